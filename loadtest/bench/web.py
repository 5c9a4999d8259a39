"""Requests, and the little of the answers that a measurement needs to understand."""
import http.client
import time
import urllib.parse
import zlib


class Reply:
    def __init__(self):
        self.status, self.wall, self.wire, self.error, self.body = 0, 0.0, 0, '', b''
        self.encoding, self.headers = '', {}

    def decoded(self):
        return zlib.decompress(self.body, 31) if self.encoding == 'gzip' else self.body

    def decoded_size(self):
        if self.encoding != 'gzip':
            return len(self.body)
        inflate, n = zlib.decompressobj(31), 0
        for i in range(0, len(self.body), 1 << 18):
            n += len(inflate.decompress(self.body[i:i + (1 << 18)]))
        return n


def get(port, path, timeout=1200, gzip=True):
    """One GET on a connection of its own. The time ends with the last byte; decoding is not in it."""
    r = Reply()
    began = time.perf_counter()
    try:
        c = http.client.HTTPConnection('127.0.0.1', port, timeout=timeout)
        c.request('GET', path, headers={'Accept-Encoding': 'gzip' if gzip else 'identity'})
        answer = c.getresponse()
        r.body = answer.read()
        r.wall = time.perf_counter() - began
        r.status, r.wire = answer.status, len(r.body)
        r.headers = {k.lower(): v for k, v in answer.getheaders()}
        r.encoding = r.headers.get('content-encoding', '')
        c.close()
    except (OSError, http.client.HTTPException) as e:
        r.wall, r.error = time.perf_counter() - began, repr(e)
    return r


def query(**kw):
    return '&'.join('%s=%s' % (k, urllib.parse.quote(str(v), safe='')) for k, v in kw.items())


def fields(b):
    """(number, value) for the fields of a protobuf message."""
    i, n = 0, len(b)

    def varint(i):
        v = shift = 0
        while True:
            c = b[i]
            i += 1
            v |= (c & 127) << shift
            if c < 128:
                return v, i
            shift += 7

    while i < n:
        tag, i = varint(i)
        kind = tag & 7
        if kind == 0:
            v, i = varint(i)
        elif kind == 2:
            size, i = varint(i)
            v, i = b[i:i + size], i + size
        else:
            size = 8 if kind == 1 else 4
            v, i = b[i:i + size], i + size
        yield tag >> 3, v


class Window:
    """proto/window.proto, as far as it is measured."""

    def __init__(self, body):
        self.t0 = self.t1 = self.events = self.hidden = self.rects = 0
        self.loading = False
        for number, v in fields(body):
            if number == 1:
                self.t0 = v - (1 << 64) if v >> 63 else v
            elif number == 2:
                self.t1 = v - (1 << 64) if v >> 63 else v
            elif number == 6:
                self.events = v
            elif number == 7:
                self.hidden = v
            elif number == 9:
                self.loading = bool(v)
            elif number == 5:
                self.rects += sum(1 for n, p in fields(v) if n == 7 for c in p if c < 128)
