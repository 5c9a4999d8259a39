"""Writes Riegeli files as collectors of profiles do: each record a chunk, each write padded to whole blocks and
begun with a signature, so that files can be put behind each other. Independent of the server."""
import struct

BLOCK, HEADER = 1 << 16, 24
USABLE = BLOCK - HEADER
KEY = (0x2f696c6567656952, 0x0a7364726f636572, 0x2f696c6567656952, 0x0a7364726f636572)
M64, M32 = (1 << 64) - 1, (1 << 32) - 1


def swapped(x):
    return (x >> 32 | x << 32) & M64


class Highway:
    """HighwayHash of 64 bits: packets of 32 bytes as four lanes."""

    ZIP_LO, ZIP_HI = (3, 12, 2, 5, 14, 1, 15, 0), (11, 4, 10, 13, 9, 6, 8, 7)

    def __init__(self):
        self.mul0 = [0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3]
        self.mul1 = [0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377]
        self.v0 = [a ^ b for a, b in zip(self.mul0, KEY)]
        self.v1 = [a ^ swapped(b) for a, b in zip(self.mul1, KEY)]

    def zipped(self, source, to):
        for i in (0, 2):
            b = struct.pack('<QQ', source[i], source[i + 1])
            for k, order in ((0, self.ZIP_LO), (1, self.ZIP_HI)):
                to[i + k] = (to[i + k] + int.from_bytes(bytes(b[j] for j in order), 'little')) & M64

    def mix(self, lanes):
        for i in range(4):
            self.v1[i] = (self.v1[i] + self.mul0[i] + lanes[i]) & M64
            self.mul0[i] ^= (self.v1[i] & M32) * (self.v0[i] >> 32)
            self.v0[i] = (self.v0[i] + self.mul1[i]) & M64
            self.mul1[i] ^= (self.v0[i] & M32) * (self.v1[i] >> 32)
        self.zipped(self.v1, self.v0)
        self.zipped(self.v0, self.v1)

    def rest(self, b):
        n, packet = len(b), bytearray(32)

        def turned(half):
            return (half << n | half >> (32 - n)) & M32
        for i in range(4):
            self.v0[i] = (self.v0[i] + (n << 32) + n) & M64
            self.v1[i] = turned(self.v1[i] >> 32) << 32 | turned(self.v1[i] & M32)
        whole, odd = n & ~3, n & 3
        packet[:whole] = b[:whole]
        if n & 16:
            packet[28:32] = b[n - 4:]
        elif odd:
            packet[16:19] = bytes((b[whole], b[whole + (odd >> 1)], b[n - 1]))
        self.mix(struct.unpack('<4Q', packet))

    def of(self, b):
        whole = len(b) & ~31
        for at in range(0, whole, 32):
            self.mix(struct.unpack_from('<4Q', b, at))
        if len(b) > whole:
            self.rest(b[whole:])
        for _ in range(4):
            self.mix([swapped(self.v0[i]) for i in (2, 3, 0, 1)])
        return (self.v0[0] + self.v1[0] + self.mul0[0] + self.mul1[0]) & M64


def checksum(b):
    return Highway().of(b)


def varint(v):
    out = b''
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def brotli(b):
    """A stream that only stores: a window of 64 KiB, uncompressed meta-blocks, an empty last one."""
    out, bits, n = b'', 0, 1  # one bit 0: the window
    for at in range(0, len(b), BLOCK):
        part = b[at:at + BLOCK]
        bits |= (len(part) - 1) << (n + 3) | 1 << (n + 19)  # not the last, four nibbles of length, stored
        out += bits.to_bytes((n + 20 + 7) // 8, 'little') + part
        bits, n = 0, 0
    return out + (3 << n | bits).to_bytes(1, 'little')


def zstandard(b):
    import zstandard as z
    return z.ZstdCompressor().compress(b)


KINDS = {'': (0, None), 'brotli': (ord('b'), brotli), 'zstd': (ord('z'), zstandard), 'snappy': (ord('s'), bytes)}


def simple(records, kind):
    """The data of a chunk of records."""
    code, packer = KINDS[kind]
    sizes, values = b''.join(varint(len(r)) for r in records), b''.join(records)
    if packer:
        sizes, values = (varint(len(x)) + packer(x) for x in (sizes, values))
    return bytes([code]) + varint(len(sizes)) + sizes + values


class Writer:
    def __init__(self):
        self.bytes = bytearray()
        self.chunk(b's', b'', 0, 0)

    def end_of(self, begin, size, records):
        over = (size + (begin + USABLE - 1) % BLOCK) // USABLE
        at = begin + records
        return max(begin + size + over * HEADER, at + max(0, BLOCK - 1 - (at + BLOCK - 1) % BLOCK - (USABLE - 1)))

    def chunk(self, kind, data, records, decoded):
        head = struct.pack('<QQ', len(data), checksum(data)) + kind + records.to_bytes(7, 'little') + struct.pack('<Q', decoded)
        body = struct.pack('<Q', checksum(head)) + head + data
        begin = len(self.bytes)
        end = self.end_of(begin, len(body), records)
        body += bytes(records)  # enough for any padding
        while len(self.bytes) < end:
            at = len(self.bytes)
            if at % BLOCK == 0:
                where = struct.pack('<QQ', at - begin, end - at)
                self.bytes += struct.pack('<Q', checksum(where)) + where
                continue
            n = min(end - at, BLOCK - at % BLOCK)
            self.bytes += body[:n].ljust(n, b'\0')
            body = body[n:]
        return begin, end

    def records(self, records, kind='brotli', chunk=b'r'):
        return self.chunk(chunk, simple(records, kind), len(records), sum(map(len, records)))

    def pad(self):
        left = -len(self.bytes) % BLOCK
        if left:
            self.chunk(b'p', bytes(max(0, left - 40)), 0, 0)


def write(path, records, kind='brotli'):
    """One write a record, as a collector appends them."""
    with open(path, 'wb') as f:
        for r in records:
            w = Writer()
            w.records([r], kind)
            w.pad()
            f.write(w.bytes)
