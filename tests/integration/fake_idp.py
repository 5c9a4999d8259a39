"""An identity provider for tests: discovery, keys, and the code flow, with faults by wish. Signs with the openssl
command, so that nothing has to be installed."""
import base64
import hashlib
import json
import os
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLIENT, SECRET = 'xprofd-test', 'a secret of the client: 100 % & more'


def b64(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def openssl(*args, data=None):
    return subprocess.run(['openssl', *args], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          timeout=30).stdout


class Key:
    def __init__(self, folder, kid, kind):
        self.kid, self.kind, self.path = kid, kind, os.path.join(str(folder), kid + '.pem')
        how = ['RSA', '-pkeyopt', 'rsa_keygen_bits:2048'] if kind == 'RS256' else ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256']
        openssl('genpkey', '-algorithm', *how, '-out', self.path)

    def jwk(self):
        if self.kind == 'RS256':
            n = int(openssl('rsa', '-in', self.path, '-noout', '-modulus').decode().split('=')[1], 16)
            return {'kty': 'RSA', 'kid': self.kid, 'use': 'sig', 'alg': 'RS256', 'n': b64(n.to_bytes(256, 'big')), 'e': 'AQAB'}
        point = openssl('pkey', '-in', self.path, '-pubout', '-outform', 'DER')[-64:]
        return {'kty': 'EC', 'crv': 'P-256', 'kid': self.kid, 'x': b64(point[:32]), 'y': b64(point[32:])}

    def sign(self, claims, **header):
        header = {k: v for k, v in dict({'alg': self.kind, 'kid': self.kid}, **header).items() if v}
        text = b64(header) + '.' + b64(claims)
        sig = openssl('dgst', '-sha256', '-sign', self.path, data=text.encode())
        if self.kind == 'ES256':  # DER of two numbers
            r = sig[4:4 + sig[3]]
            s = sig[6 + len(r):]
            sig = r.lstrip(b'\0').rjust(32, b'\0') + s.lstrip(b'\0').rjust(32, b'\0')
        return text + '.' + b64(sig)


class Provider:
    """keys: those that are published. people: {subject: claims}. down: nothing is answered."""

    def __init__(self, folder):
        self.folder, self.down, self.codes, self.asked = folder, False, {}, []
        self.people = {}
        self.keys = [Key(folder, 'one', 'RS256')]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.get(self)

            def do_POST(self):
                outer.post(self)
        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.issuer = 'http://127.0.0.1:%d' % self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, h, body, status=200):
        data = json.dumps(body).encode()
        h.send_response(status)
        h.send_header('content-type', 'application/json')
        h.send_header('content-length', str(len(data)))
        h.end_headers()
        h.wfile.write(data)

    def get(self, h):
        url = urllib.parse.urlsplit(h.path)
        self.asked.append(url.path)
        if self.down:
            self.answer(h, {}, 503)
        elif url.path == '/.well-known/openid-configuration':
            self.answer(h, {'issuer': self.issuer, 'jwks_uri': self.issuer + '/jwks',
                            'authorization_endpoint': self.issuer + '/authorize',
                            'token_endpoint': self.issuer + '/token', 'end_session_endpoint': self.issuer + '/out?a=b',
                            'token_endpoint_auth_methods_supported': ['client_secret_basic', 'client_secret_post']})
        elif url.path == '/jwks':
            self.answer(h, {'keys': [k.jwk() for k in self.keys]})
        else:
            self.answer(h, {}, 404)

    def post(self, h):
        form = dict(urllib.parse.parse_qsl(h.rfile.read(int(h.headers.get('content-length', 0))).decode()))
        basic = '%s:%s' % (CLIENT, urllib.parse.quote(SECRET, safe='-._~'))
        asked = self.codes.pop(form.get('code'), None)
        challenge = b64(hashlib.sha256(form.get('code_verifier', '').encode()).digest())
        good = (asked and form.get('grant_type') == 'authorization_code' and form.get('redirect_uri') == asked['redirect_uri']
                and challenge == asked['code_challenge'] and asked['code_challenge_method'] == 'S256'
                and h.headers.get('authorization') == 'Basic ' + base64.b64encode(basic.encode()).decode())
        if not good:
            self.answer(h, {'error': 'invalid_grant'}, 400)
            return
        token = self.token(asked['sub'], nonce=asked['nonce'])
        self.answer(h, {'access_token': 'x', 'token_type': 'Bearer', 'id_token': token})

    def let_in(self, url, subject):
        """What the page at `authorize` does when somebody signs in: -> the address that the browser is sent to."""
        parts = urllib.parse.urlsplit(url)
        assert url.startswith(self.issuer + '/authorize?'), url
        asked = dict(urllib.parse.parse_qsl(parts.query))
        assert asked['response_type'] == 'code' and asked['client_id'] == CLIENT and 'openid' in asked['scope'].split()
        code = 'code+/%d' % (len(self.codes) + 1)
        self.codes[code] = dict(asked, sub=subject)
        return asked['redirect_uri'] + '?' + urllib.parse.urlencode({'code': code, 'state': asked['state']})

    def claims(self, subject, **more):
        now = int(time.time())
        c = dict({'iss': self.issuer, 'aud': CLIENT, 'sub': subject, 'iat': now, 'exp': now + 600}, **self.people.get(subject, {}))
        c.update(more)
        return {k: v for k, v in c.items() if v is not None}

    def token(self, subject, key=None, **more):
        return (key or self.keys[0]).sign(self.claims(subject, **more))
