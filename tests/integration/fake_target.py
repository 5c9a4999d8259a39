"""A profiler server that can be told to misbehave: tensorflow.ProfilerService with grpcio, without protobuf.

    FakeTarget(behave)    behave(method, request fields, context) -> bytes of the answer

It serves whatever method by name; `calls` has what came: (method, {number: [values]}). Fields are numbers or bytes.
"""
import socket
import threading
from concurrent import futures

import grpc

SERVICE = 'tensorflow.ProfilerService'
METHODS = ('Profile', 'Terminate', 'StartContinuousProfiling', 'GetSnapshot', 'StopContinuousProfiling')


def varint(v):
    out = b''
    while v >= 0x80:
        out += bytes((v & 0x7f | 0x80,))
        v >>= 7
    return out + bytes((v,))


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def fields(message):
    """{number: [values]} of a message, all of one level."""
    out, at = {}, 0

    def read():
        nonlocal at
        v = shift = 0
        while True:
            c = message[at]
            at += 1
            v |= (c & 0x7f) << shift
            shift += 7
            if c < 0x80:
                return v

    while at < len(message):
        tag = read()
        v = read()
        if tag & 7 == 2:
            v, at = message[at:at + v], at + v
        out.setdefault(tag >> 3, []).append(v)
    return out


def xspace(padding=0):
    """A profile of one host plane with one event, and so many bytes more."""
    event = field(4, field(1, 1) + field(2, 1000) + field(3, 5000))
    line = field(3, field(1, 1) + field(2, b'main') + field(3, 1) + event)
    names = field(4, field(1, 1) + field(2, field(1, 1) + field(2, b'work')))
    plane = field(1, 1) + field(2, b'/host:CPU') + line + names
    return field(1, plane) + (field(1, field(2, b'x' * padding)) if padding else b'')


def response(space=None, empty=False):
    return (field(7, 1) if empty else b'') + (field(8, space) if space is not None else b'')


class FakeTarget:
    def __init__(self, behave):
        self.behave, self.calls, self.lock = behave, [], threading.Lock()
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=[('grpc.max_send_message_length', -1)])
        raw = {m: grpc.unary_unary_rpc_method_handler(lambda request, context, m=m: self.serve(m, request, context))
               for m in METHODS}
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, raw),))
        self.port = self.server.add_insecure_port('127.0.0.1:0')
        self.server.start()

    def serve(self, method, request, context):
        asked = fields(request)
        with self.lock:
            self.calls.append((method, asked))
        return self.behave(method, asked, context) or b''

    def of(self, method):
        with self.lock:
            return [asked for m, asked in self.calls if m == method]

    def stop(self):
        self.server.stop(None)


class RawTarget:
    """HTTP/2 by hand, for what no library sends: each call is answered by HEADERS, these bytes as DATA, and trailers or none.

    status None: no grpc-status. close: the connection ends after the data, without an end of the stream. The first call, with which a
    capture finds out who is there, is answered as it should be."""

    def __init__(self, data=b'', status=b'0', close=False, more=()):
        self.data, self.status, self.close, self.more, self.calls = data, status, close, more, 0
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    @staticmethod
    def frame(kind, flags, stream, payload=b''):
        return len(payload).to_bytes(3, 'big') + bytes((kind, flags)) + stream.to_bytes(4, 'big') + payload

    @staticmethod
    def literal(name, value):
        return b'\0' + bytes((len(name),)) + name + bytes((len(value),)) + value

    def serve(self, peer):
        with peer, peer.makefile('rb') as f:
            f.read(24)
            peer.sendall(self.frame(4, 0, 0))
            while True:
                start = f.read(9)
                if len(start) < 9:
                    return
                f.read(int.from_bytes(start[:3], 'big'))
                if start[3] == 4 and not start[4] & 1:
                    peer.sendall(self.frame(4, 1, 0))
                elif start[3] in (0, 1) and start[4] & 1:
                    self.answer(peer, int.from_bytes(start[5:], 'big'))

    def answer(self, peer, stream):
        first = b'\x88' + self.literal(b'content-type', b'application/grpc')
        self.calls += 1
        if self.calls == 1:
            peer.sendall(self.frame(1, 5, stream, first + self.literal(b'grpc-status', b'12')))
            return
        for name, value in self.more:
            first += self.literal(name, value)
        out = self.frame(1, 4, stream, first)
        for at in range(0, len(self.data), 16384):
            out += self.frame(0, 0, stream, self.data[at:at + 16384])
        if self.status is not None:
            out += self.frame(1, 5, stream, self.literal(b'grpc-status', self.status))
        elif not self.close:
            out += self.frame(0, 1, stream)
        peer.sendall(out)
        if self.close:
            peer.shutdown(socket.SHUT_RDWR)

    def stop(self):
        self.socket.close()
