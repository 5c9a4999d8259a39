"""Reads a profile independently of the server: what the answers are held against. No package needed."""


def fields(b):
    i, n = 0, len(b)

    def varint(i):
        v = shift = 0
        while True:
            c = b[i]
            i += 1
            v |= (c & 127) << shift
            shift += 7
            if c < 128:
                return v, i

    while i < n:
        tag, i = varint(i)
        kind = tag & 7
        if kind == 0:
            v, i = varint(i)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if kind == 2:
                size, i = varint(i)
            v, i = b[i:i + size], i + size
        yield tag >> 3, v


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def unzigzag(v):
    return (v >> 1) ^ -(v & 1)


class Line:
    def __init__(self, b):
        self.name, self.ts, self.events = '', 0, []
        raw = []
        for f, v in fields(b):
            if f == 2:
                self.name = v.decode()
            elif f == 3:
                self.ts = signed(v)
            elif f == 4:
                raw.append(v)
        for e in raw:
            d = dict((f, v) for f, v in fields(e) if f in (1, 2, 3))
            begin = self.ts * 1000 + signed(d.get(2, 0))
            self.events.append((begin, signed(d.get(3, 0)), d.get(1, 0)))


class Plane:
    def __init__(self, b):
        self.name, self.lines, self.names = '', [], {}
        for f, v in fields(b):
            if f == 2:
                self.name = v.decode()
            elif f == 3:
                self.lines.append(Line(v))
            elif f == 4:
                entry = dict(fields(v))
                meta = dict((k, x) for k, x in fields(entry[2]) if k in (1, 2, 4))
                self.names[entry[1]] = (meta.get(4) or meta.get(2, b'')).decode()


def varint(v):
    out, v = b'', v & (1 << 64) - 1
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def block(field, body):
    body = body.encode() if isinstance(body, str) else body
    return varint(field << 3 | 2) + varint(len(body)) + body


def plane(name, names, lines, stat='tf_op'):
    """Bytes of an XSpace with one plane; lines: {name: [(index of the name, begin ps, duration ps, value of the stat)]}."""
    b = block(2, name)
    for i, (line, events) in enumerate(lines.items()):
        b += block(3, number(1, i + 1) + block(2, line) + b''.join(
            block(4, number(1, m + 1) + number(2, at) + number(3, d) + block(4, number(1, 1) + block(5, value)))
            for m, at, d, value in events))
    for i, n in enumerate(names):
        b += block(4, number(1, i + 1) + block(2, number(1, i + 1) + block(2, n)))
    return block(1, b + block(5, number(1, 1) + block(2, number(1, 1) + block(2, stat))))


def read(path):
    with open(path, 'rb') as f:
        data = f.read()
    return [Plane(v) for f, v in fields(data) if f == 1]


def packed(b):
    out, v, shift = [], 0, 0
    for c in b:
        v |= (c & 127) << shift
        shift += 7
        if c < 128:
            out.append(v)
            v = shift = 0
    return out


class Row:
    def __init__(self, b, t0, names):
        self.line = self.lane = self.events = self.hidden = self.busy = 0
        col = {}
        for f, v in fields(b):
            if f == 1:
                self.line = v
            elif f == 2:
                self.lane = v
            elif f == 3:
                self.events = v
            elif f == 4:
                self.hidden = v
            elif f == 5:
                self.busy = signed(v)
            else:
                col.setdefault(f, []).extend(packed(v) if isinstance(v, bytes) else [v])
        begins, durations = col.get(6, []), col.get(7, [])
        counts = col.get(10) or [1] * len(begins)
        self.rects, end, last = [], t0, 0
        for i, gap in enumerate(begins):
            begin = t0 + unzigzag(gap) if i == 0 else end + gap
            end = begin + durations[i]
            last += unzigzag(col[9][i])
            self.rects.append((begin, durations[i], names[col[8][i]], last, counts[i]))


class Window:
    """An answer of /window (proto/window.proto)."""

    def __init__(self, b):
        self.t0 = self.t1 = self.px = self.events = self.hidden = self.merge_px = 0
        self.loading = self.partial = False
        names, rows = [], []
        for f, v in fields(b):
            if f == 1:
                self.t0 = signed(v)
            elif f == 2:
                self.t1 = signed(v)
            elif f == 3:
                self.px = v
            elif f == 4:
                names.append(v.decode())
            elif f == 5:
                rows.append(v)
            elif f == 6:
                self.events = v
            elif f == 7:
                self.hidden = v
            elif f == 8:
                self.merge_px = v
            elif f == 9:
                self.loading = bool(v)
            elif f == 14:
                self.partial = bool(v)
        self.rows = [Row(r, self.t0, names) for r in rows]
