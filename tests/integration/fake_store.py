"""A bucket that can be told to misbehave: Cloud Storage's JSON API, S3's subset that we use, and the servers
that give tokens.

    fake_store.py --dir DIR [--port N]      DIR/<bucket>/<object>; prints "listening on PORT"

What it does wrong is set by POST /_fake/set with JSON {"latency_ms", "bandwidth" (bytes/s a connection),
"total_bandwidth" (of all of them), "need_auth", "rules": [...]}. A rule is {"match": regexp on the path with query, "times": N, and one of
"status" (with "retry_after", "body"), "reset_after", "short_after", "stall_after" (bytes of the body),
"trickle" (bytes/s), "wrong_range", "drop"}; rules are tried in order, one that was used "times" times is over.
GET /_fake/log: [{"method", "path", "range", "auth", "status", "sent"}], POST /_fake/clear empties it and the rules.
"""
import argparse
import base64
import hashlib
import hmac
import json
import os
import re
import socket
import struct
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIELDS = re.compile(r'^[A-Za-z,()/]+$')


def now_iso(t):
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(t)) + '.%03dZ' % (t % 1 * 1000)


class Store:
    """Objects are files; what a file system does not keep is kept here, by name."""

    def __init__(self, root):
        self.root = root
        self.lock = threading.RLock()
        self.generations, self.encodings, self.sessions = {}, {}, {}
        self.last = 0

    def path(self, bucket, name):
        return os.path.join(self.root, bucket, *name.split('/'))

    def generation(self, bucket, name):
        st = os.stat(self.path(bucket, name))
        seen = (st.st_mtime_ns, st.st_size, st.st_ino)
        with self.lock:
            known = self.generations.get((bucket, name))
            if not known or known[0] != seen:
                self.last = max(self.last + 1, time.time_ns() // 1000)
                known = self.generations[(bucket, name)] = (seen, self.last)
            return known[1], st

    def info(self, bucket, name):
        path = self.path(bucket, name)
        if not os.path.isfile(path):
            return None
        generation, st = self.generation(bucket, name)
        o = {'kind': 'storage#object', 'bucket': bucket, 'name': name, 'size': str(st.st_size),
             'generation': str(generation), 'updated': now_iso(st.st_mtime), 'metageneration': '1',
             'etag': '"%x"' % generation}
        if (bucket, name) in self.encodings:
            o['contentEncoding'] = self.encodings[(bucket, name)]
        return o

    def put(self, bucket, name, body):
        path = self.path(bucket, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + '.tmp~', 'wb') as f:
            f.write(body)
        os.replace(path + '.tmp~', path)
        return self.info(bucket, name)

    def names(self, bucket, prefix):
        """All names below prefix, sorted by bytes; (name, False), or (folder, True) in one level."""
        top = os.path.join(self.root, bucket)
        start = os.path.join(top, *prefix.split('/')[:-1])
        for at, dirs, files in os.walk(start):
            rel = os.path.relpath(at, top).replace(os.sep, '/')
            for f in files:
                name = f if rel == '.' else rel + '/' + f
                if name.startswith(prefix) and not name.endswith('.tmp~'):
                    yield name

    def level(self, bucket, prefix):
        """One level without walking what lies below, as a bucket does it."""
        top = os.path.join(self.root, bucket, *prefix.split('/')[:-1])
        base = prefix[:prefix.rfind('/') + 1]
        try:
            entries = list(os.scandir(top))
        except (FileNotFoundError, NotADirectoryError):
            return
        for e in entries:
            name = base + e.name + ('/' if e.is_dir() else '')
            if name.startswith(prefix) and not name.endswith('.tmp~'):
                yield name

    def listing(self, bucket, prefix, delimiter, after, limit):
        names = self.level(bucket, prefix) if delimiter else self.names(bucket, prefix)
        names = sorted(names, key=lambda n: n.encode())
        names = [n for n in names if not after or n.encode() > after.encode()]
        return names[:limit], len(names) > limit


class Faults:
    def __init__(self):
        self.lock = threading.Lock()
        self.log = []
        self.clear()

    def clear(self):
        self.rules, self.latency, self.bandwidth, self.need_auth = [], 0, 0, None
        self.total, self.free = 0, 0.0
        del self.log[:]

    def set(self, o):
        with self.lock:
            self.latency = o.get('latency_ms', self.latency)
            self.bandwidth = o.get('bandwidth', self.bandwidth)
            self.total = o.get('total_bandwidth', self.total)
            self.need_auth = o.get('need_auth', self.need_auth)
            if 'rules' in o:
                self.rules = [dict(r, times=r.get('times', 1)) for r in o['rules']]

    def line(self, n):
        """Waits until n bytes may go out, after those of others."""
        with self.lock:
            now = time.monotonic()
            self.free = max(self.free, now) + n / self.total
            wait = self.free - now
        time.sleep(wait)

    def rule(self, path):
        with self.lock:
            for r in self.rules:
                if r['times'] > 0 and re.search(r['match'], path):
                    r['times'] -= 1
                    return r
        return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = 0

    def log_message(self, *a):
        pass

    # --- answering ---

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reset(self):
        """The client sees a connection reset, not an end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.close_connection = True
        self.connection.close()

    def note(self, status, sent=0):
        self.entry.update(status=status, sent=sent)

    def answer(self, status, body=b'', type_='application/json', headers=()):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.note(status)
        head = ['HTTP/1.1 %d %s' % (status, self.responses.get(status, ('X',))[0]), 'Content-Type: ' + type_]
        head += ['%s: %s' % h for h in headers]
        if not any(h[0].lower() == 'content-length' for h in headers):
            head.append('Content-Length: %d' % len(body))
        try:
            self.connection.sendall(('\r\n'.join(head) + '\r\n\r\n').encode())
            if self.command != 'HEAD':
                self.send_body(body)
        except OSError:
            self.close_connection = True

    def send_body(self, body):
        r, rate = self.rule, self.server.faults.bandwidth
        stop = next((r[k] for k in ('reset_after', 'short_after', 'stall_after') if k in r), None)
        if stop is not None:
            body = body[:stop]
        rate = r.get('trickle', rate)
        step = max(1, min(1 << 18, rate // 50)) if rate else 1 << 20
        begun, view, sent = time.monotonic(), memoryview(body), 0
        while sent < len(view):
            if self.server.faults.total:
                self.server.faults.line(min(step, len(view) - sent))
            self.connection.sendall(view[sent:sent + step])
            sent += min(step, len(view) - sent)
            self.entry['sent'] = sent
            if rate:
                time.sleep(max(0, begun + sent / rate - time.monotonic()))
        if 'reset_after' in r:
            time.sleep(0.05)
            self.reset()
        elif 'short_after' in r:
            self.close_connection = True
        elif 'stall_after' in r:
            time.sleep(r.get('seconds', 30))
            self.close_connection = True

    def fail(self, status, message=''):
        body = {'error': {'code': status, 'message': message or 'as it was told', 'errors': [{'reason': 'fake'}]}}
        headers = [('Retry-After', self.rule['retry_after'])] if 'retry_after' in self.rule else []
        self.answer(status, body, headers=headers)

    # --- requests ---

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        self.q = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.route = url.path
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        faults = self.server.faults
        if url.path.startswith('/_fake/'):
            self.entry, self.rule = {}, {}
            return self.control(url.path[7:], body)
        self.rule = faults.rule(self.path)
        self.entry = {'method': self.command, 'path': self.path, 'range': self.headers.get('Range'),
                      'auth': self.headers.get('Authorization'), 'status': 0, 'sent': 0}
        faults.log.append(self.entry)
        if faults.latency:
            time.sleep(faults.latency / 1000)
        if self.rule.get('drop'):
            return self.reset()
        if 'status' in self.rule:
            return self.fail(self.rule['status'], self.rule.get('body', ''))
        if url.path.startswith(('/computeMetadata/', '/token', '/sts', '/impersonate')):
            return self.tokens(body)
        if url.path.startswith(('/storage/v1/', '/upload/storage/v1/')):
            return self.gcs(body)
        return self.s3(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

    def control(self, what, body):
        faults = self.server.faults
        if what == 'set':
            faults.set(json.loads(body))
        elif what == 'clear':
            faults.clear()
        elif what == 'encoding':
            o = json.loads(body)
            self.server.store.encodings[(o['bucket'], o['name'])] = o['encoding']
        self.answer(200, list(faults.log) if what == 'log' else {})

    # --- tokens ---

    def tokens(self, body):
        s = self.server
        form = dict(urllib.parse.parse_qsl(body.decode('utf8', 'replace')))
        self.entry['form'] = form
        if self.route.startswith('/computeMetadata/'):
            if self.headers.get('Metadata-Flavor') != 'Google':
                return self.fail(403, 'no flavor')
            return self.answer(200, s.new_token(), headers=[('Metadata-Flavor', 'Google')])
        if self.route.startswith('/impersonate'):
            if self.headers.get('Authorization') != 'Bearer ' + s.token:
                return self.fail(401)
            t = s.new_token()
            return self.answer(200, {'accessToken': t['access_token'], 'expireTime': now_iso(time.time() + 3600)})
        return self.answer(200, s.new_token())

    def authorized(self):
        need = self.server.faults.need_auth
        if need == 'token':
            return self.headers.get('Authorization') == 'Bearer ' + self.server.token
        if need == 'none':
            return self.headers.get('Authorization') is None
        return True

    # --- Cloud Storage ---

    def gcs(self, body):
        if not self.authorized():
            return self.fail(401, 'Invalid Credentials')
        m = re.fullmatch(r'(/upload)?/storage/v1/b/([^/]+)/o(?:/([^/]+))?', self.route)
        if not m or not os.path.isdir(os.path.join(self.server.store.root, urllib.parse.unquote(m[2]))):
            return self.fail(404, 'Not Found')
        bucket, name = urllib.parse.unquote(m[2]), urllib.parse.unquote(m[3] or '')
        if m[1]:
            return self.gcs_upload(bucket, body)
        if not name:
            return self.gcs_list(bucket)
        return self.gcs_get(bucket, name)

    def gcs_list(self, bucket):
        store, q = self.server.store, self.q
        if q.get('fields') and not FIELDS.match(q['fields']):
            return self.fail(400, 'bad field mask')
        after = base64.b64decode(q['pageToken']).decode() if q.get('pageToken') else ''
        limit = min(int(q.get('maxResults', 1000)), 1000)
        names, more = store.listing(bucket, q.get('prefix', ''), q.get('delimiter'), after, limit)
        out = {'kind': 'storage#objects', 'items': [], 'prefixes': []}
        for n in names:
            if n.endswith('/'):
                out['prefixes'].append(n)
            else:
                info = store.info(bucket, n)
                if info:
                    out['items'].append(self.masked(info))
        if more:
            out['nextPageToken'] = base64.b64encode(names[-1].encode()).decode()
        self.answer(200, out)

    def masked(self, info):
        m = re.search(r'items\(([^)]*)\)', self.q.get('fields', ''))
        keep = m[1].split(',') if m else self.q.get('fields', '').split(',') if self.q.get('fields') else None
        return {k: v for k, v in info.items() if not keep or k in keep}

    def gcs_get(self, bucket, name):
        info = self.server.store.info(bucket, name)
        if not info or self.q.get('generation', info['generation']) != info['generation']:
            return self.fail(404, 'No such object: %s/%s' % (bucket, name))
        if self.q.get('ifGenerationMatch', info['generation']) != info['generation']:
            return self.fail(412)
        if self.q.get('alt') != 'media':
            return self.answer(200, self.masked(info))
        headers = [('x-goog-generation', info['generation'])]
        if 'contentEncoding' in info and 'gzip' in self.headers.get('Accept-Encoding', ''):
            headers.append(('Content-Encoding', 'gzip'))
        self.media(bucket, name, int(info['size']), headers)

    def media(self, bucket, name, size, headers):
        a, z = 0, size
        m = re.fullmatch(r'bytes=(\d+)-(\d*)', self.headers.get('Range', ''))
        status = 200
        if m and not self.rule.get('no_ranges'):
            a, z = int(m[1]), min(int(m[2]) + 1 if m[2] else size, size)
            if a >= size:
                return self.answer(416, headers=[('Content-Range', 'bytes */%d' % size)])
            status = 206
            told = a + 7 if self.rule.get('wrong_range') else a
            headers = headers + [('Content-Range', 'bytes %d-%d/%d' % (told, z - 1, size))]
        with open(self.server.store.path(bucket, name), 'rb') as f:
            f.seek(a)
            body = f.read(z - a) if self.command != 'HEAD' else b''
        headers.append(('Content-Length', z - a))
        return self.answer(status, body, 'application/octet-stream', headers)

    def precondition(self, bucket, name):
        want = self.q.get('ifGenerationMatch')
        info = self.server.store.info(bucket, name)
        return want is None or want == (info['generation'] if info else '0')

    def gcs_upload(self, bucket, body):
        store, q = self.server.store, self.q
        if 'upload_id' in q:
            return self.gcs_part(bucket, q['upload_id'], body)
        with store.lock:
            if not self.precondition(bucket, q['name']):
                return self.fail(412)
            if q.get('uploadType') == 'media':
                return self.answer(200, store.put(bucket, q['name'], body))
        key = 'u%d' % len(store.sessions)
        store.sessions[key] = {'name': q['name'], 'body': b'', 'if': q.get('ifGenerationMatch')}
        where = 'http://%s/upload/storage/v1/b/%s/o?uploadType=resumable&upload_id=%s' % (self.headers['Host'], bucket, key)
        self.answer(200, headers=[('Location', where)])

    def gcs_part(self, bucket, key, body):
        s = self.server.store.sessions.get(key)
        m = re.fullmatch(r'bytes (?:(\d+)-(\d+)|\*)/(\d+)', self.headers.get('Content-Range', ''))
        if not s or not m:
            return self.fail(404 if not s else 400)
        if m[1]:
            if int(m[1]) != len(s['body']):
                return self.fail(400, 'a gap')
            keep = self.rule.get('keep', len(body))
            s['body'] += body[:keep]
            if self.rule.get('lose_answer'):
                return self.reset()
        if len(s['body']) < int(m[3]):
            got = [('Range', 'bytes=0-%d' % (len(s['body']) - 1))] if s['body'] else []
            return self.answer(308, headers=got)
        with self.server.store.lock:
            self.q['ifGenerationMatch'] = s['if']
            if not self.precondition(bucket, s['name']):
                return self.fail(412)
            return self.answer(200, self.server.store.put(bucket, s['name'], s['body']))

    # --- S3 ---

    def s3(self, body):
        if self.server.s3_secret and not self.s3_signed(body):
            return self.answer(403, b'<Error><Code>SignatureDoesNotMatch</Code></Error>', 'application/xml')
        parts = self.route.lstrip('/').split('/', 1)
        bucket, name = urllib.parse.unquote(parts[0]), urllib.parse.unquote(parts[1]) if len(parts) > 1 else ''
        if not os.path.isdir(os.path.join(self.server.store.root, bucket)):
            return self.answer(404, b'<Error><Code>NoSuchBucket</Code></Error>', 'application/xml')
        if not name:
            return self.s3_list(bucket)
        if self.command == 'PUT':
            return self.s3_put(bucket, name, body)
        info = self.server.store.info(bucket, name)
        if not info:
            return self.answer(404, b'<Error><Code>NoSuchKey</Code></Error>', 'application/xml')
        if self.headers.get('If-Match', info['etag']) != info['etag']:
            return self.answer(412, type_='application/xml')
        when = time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(os.stat(self.server.store.path(bucket, name)).st_mtime))
        self.media(bucket, name, int(info['size']), [('ETag', info['etag']), ('Last-Modified', when)])

    def s3_put(self, bucket, name, body):
        with self.server.store.lock:
            info = self.server.store.info(bucket, name)
            match = self.headers.get('If-Match')
            if (info and self.headers.get('If-None-Match') == '*') or (match and (not info or info['etag'] != match)):
                return self.answer(412, type_='application/xml')
            info = self.server.store.put(bucket, name, body)
        self.answer(200, headers=[('ETag', info['etag'])])

    def s3_list(self, bucket):
        q, store = self.q, self.server.store
        quote = (lambda s: urllib.parse.quote(s, safe='/')) if q.get('encoding-type') == 'url' else \
            (lambda s: s.replace('&', '&amp;').replace('<', '&lt;'))
        after = base64.b64decode(q['continuation-token']).decode() if 'continuation-token' in q else ''
        limit = min(int(q.get('max-keys', 1000)), 1000)
        names, more = store.listing(bucket, q.get('prefix', ''), q.get('delimiter'), after, limit)
        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
               '<Name>%s</Name><Prefix/><IsTruncated>%s</IsTruncated>' % (bucket, 'true' if more else 'false')]
        if q.get('encoding-type'):
            out.append('<EncodingType>url</EncodingType>')
        for n in names:
            if n.endswith('/'):
                out.append('<CommonPrefixes><Prefix>%s</Prefix></CommonPrefixes>' % quote(n))
                continue
            info = store.info(bucket, n)
            if info:
                out.append('<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>%s</ETag><Size>%s</Size>'
                           '<StorageClass>STANDARD</StorageClass></Contents>' %
                           (quote(n), info['updated'], info['etag'].replace('"', '&quot;'), info['size']))
        if more:
            out.append('<NextContinuationToken>%s</NextContinuationToken>' % base64.b64encode(names[-1].encode()).decode())
        self.answer(200, (''.join(out) + '</ListBucketResult>').encode(), 'application/xml')

    def s3_signed(self, body):
        """Signature version 4, worked out from what came in."""
        auth = self.headers.get('Authorization', '')
        m = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request,'
                         r'SignedHeaders=([^,]+),Signature=([0-9a-f]{64})', auth)
        if not m or m[1] != self.server.s3_id:
            return False
        url = urllib.parse.urlsplit(self.path)
        query = sorted(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        query = '&'.join('%s=%s' % (urllib.parse.quote(k, safe='-_.~'), urllib.parse.quote(v, safe='-_.~')) for k, v in query)
        path = urllib.parse.quote(urllib.parse.unquote(url.path), safe='/-_.~')
        names = m[4].split(';')
        lines = ''.join('%s:%s\n' % (n, ' '.join(self.headers.get(n, '').split())) for n in names)
        claimed = self.headers.get('x-amz-content-sha256', '')
        if claimed != hashlib.sha256(body).hexdigest():
            return False
        canonical = '\n'.join([self.command, path, query, lines, m[4], claimed])
        scope = '%s/%s/s3/aws4_request' % (m[2], m[3])
        text = '\n'.join(['AWS4-HMAC-SHA256', self.headers.get('x-amz-date', ''), scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = ('AWS4' + self.server.s3_secret).encode()
        for part in (m[2], m[3], 's3', 'aws4_request'):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), m[5])


class Fake(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, root, port=0, s3_id='', s3_secret=''):
        super().__init__(('127.0.0.1', port), Handler)
        self.store, self.faults = Store(root), Faults()
        self.s3_id, self.s3_secret = s3_id, s3_secret
        self.token, self.tokens, self.token_life = 'none-yet', 0, 3600
        self.url = 'http://127.0.0.1:%d' % self.server_address[1]

    def handle_error(self, request, client_address):
        pass  # a client that went away

    def new_token(self):
        self.tokens += 1
        self.token = 'token-%d' % self.tokens
        return {'access_token': self.token, 'expires_in': self.token_life, 'token_type': 'Bearer'}

    def start(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def calls(self, pattern=''):
        return [e for e in list(self.faults.log) if re.search(pattern, e['path'])]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--dir', required=True)
    ap.add_argument('--port', type=int, default=0)
    ap.add_argument('--s3-id', default='')
    ap.add_argument('--s3-secret', default='')
    a = ap.parse_args()
    fake = Fake(a.dir, a.port, a.s3_id, a.s3_secret)
    print('listening on %d' % fake.server_address[1], flush=True)
    fake.serve_forever()


if __name__ == '__main__':
    main()
