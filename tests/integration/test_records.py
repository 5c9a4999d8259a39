"""Profiles written as records (Riegeli) say what the same profile in one piece says."""
import os
import subprocess

import daemon
import pytest

import riegeli
from xspace import fields, number, varint

TOOLS = ['overview_page', 'hlo_stats', 'memory_profile']


def put(field, b):
    return varint(field << 3 | 2) + varint(len(b)) + b


def raw_fields(b):
    """(number, value, the field as it stands) of each."""
    out, left = [], b
    for f, v in fields(b):
        if isinstance(v, int):
            n = len(number(f, v))
        else:
            n = len(put(f, v))
        if left[:n] not in (put(f, v) if not isinstance(v, int) else number(f, v),):  # a fixed one
            n = len(varint(f << 3)) + len(v)
        out.append((f, v, left[:n]))
        left = left[n:]
    return out


def renumbered(b, changed):
    """Metadata ids in events (1) and stats (4.1, 4.7) by what `changed` says of (event, stat) ids."""
    out = b''
    for f, v, raw in raw_fields(b):
        if f == 1 and isinstance(v, int):
            out += number(1, changed(0, v))
        elif f == 4:
            out += put(4, stat(v, changed))
        else:
            out += raw
    return out


def stat(b, changed):
    return b''.join(number(f, changed(1, v)) if f in (1, 7) and isinstance(v, int) else raw for f, v, raw in raw_fields(b))


def entry(b, which, changed):
    parts = dict(fields(b))
    key = changed(which, parts.get(1, 0))
    value = number(1, key)
    for f, v, raw in raw_fields(parts.get(2, b'')):
        value += b'' if f == 1 else put(5, stat(v, changed)) if f == 5 and which == 0 else raw
    return number(1, key) + put(2, value)


def part_of(plane, which, of, changed, later):
    """Of every line the events of one part of it, and the metadata under other ids."""
    out = b''
    for f, v, raw in raw_fields(plane):
        if f == 3:
            line = raw_fields(v)
            events = [x for k, x, _ in line if k == 4]
            begin, end = len(events) * which // of, len(events) * (which + 1) // of
            head = b''.join(r for k, x, r in line if k not in (3, 4))
            at = next((x for k, x, _ in line if k == 3), 0)
            out += put(3, head + number(3, at - later) + b''.join(
                put(4, moved(renumbered(e, changed), later * 1000)) for e in events[begin:end]))
        elif f in (4, 5):
            out += put(f, entry(v, f - 4, changed))
        elif f == 6:
            out += put(6, stat(v, changed))
        else:
            out += raw
    return out


def moved(event, by):
    kept = raw_fields(event)
    if any(f == 5 for f, _, _ in kept):
        return event
    offset = next((v for f, v, _ in kept if f == 2), 0)
    return b''.join(r for f, _, r in kept if f != 2) + number(2, offset + by)


def records_of(xspace):
    """Three records: planes in turn; then devices' and hosts' in parts, under other ids and an earlier begin of lines."""
    def same(_, i):
        return i

    def other(which, i):
        return i * 2 + 1001 + which

    planes = [v for f, v, _ in raw_fields(xspace) if f == 1]
    rest = b''.join(r for f, _, r in raw_fields(xspace) if f != 1)
    named = [dict((f, v) for f, v in fields(p) if f == 2)[2] for p in planes]
    split = [n.startswith((b'/device', b'/host:CPU')) for n in named]
    first = rest + b''.join(put(1, part_of(p, 0, 3, same, 0) if s else p) for p, s in zip(planes, split))
    second = rest + b''.join(put(1, part_of(p, 1, 3, other, 2)) for p, s in zip(planes, split) if s)
    third = rest + b''.join(put(1, part_of(p, 2, 3, same, 7)) for p, s in zip(planes, split) if s)
    return [first, second, third]


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    root = str(tmp_path_factory.mktemp('whole'))
    daemon.generate(root, 'r', '--steps', '5')
    with open(daemon.profile(root, 'r'), 'rb') as f:
        return f.read()


@pytest.fixture(scope='module')
def in_parts(whole, tmp_path_factory):
    path = str(tmp_path_factory.mktemp('parts') / 'host-0.xplane.riegeli')
    riegeli.write(path, records_of(whole))
    with open(path, 'rb') as f:
        return f.read()


def folder(tmp_path, run='r'):
    at = daemon.run_dir(str(tmp_path), run)
    os.makedirs(at, exist_ok=True)
    return at


def report(root, tool, *words):
    p = subprocess.run([daemon.XPROFD, 'query', root, tool, '--json', *words], capture_output=True, timeout=60)
    return p.returncode, p.stdout, p.stderr.decode()


def plain(tmp_path, whole):
    at = folder(tmp_path / 'plain')
    with open(os.path.join(at, 'host-0.xplane.pb'), 'wb') as f:
        f.write(whole)
    return str(tmp_path / 'plain')


@pytest.mark.parametrize('kind', ['', 'brotli', 'zstd'])
def test_one_record_is_the_profile(tmp_path, whole, kind):
    riegeli.write(os.path.join(folder(tmp_path / 'r'), 'host-0.xplane.riegeli'), [whole], kind)
    assert report(str(tmp_path / 'r'), 'overview_page') == report(plain(tmp_path, whole), 'overview_page')


@pytest.mark.parametrize('tool', TOOLS)
def test_planes_in_parts_are_joined(tmp_path, whole, in_parts, tool):
    with open(os.path.join(folder(tmp_path / 'r'), 'host-0.xplane.riegeli'), 'wb') as f:
        f.write(in_parts)
    code, got, _ = report(str(tmp_path / 'r'), tool)
    assert code == 0 and got == report(plain(tmp_path, whole), tool)[1]


def test_a_damaged_record_is_left_out_and_told(tmp_path, in_parts):
    body = bytearray(in_parts)
    body[len(body) // 3 & ~(riegeli.BLOCK - 1) | 200] ^= 0x10  # of the first or the second
    with open(os.path.join(folder(tmp_path), 'host-0.xplane.riegeli'), 'wb') as f:
        f.write(body)
    code, got, _ = report(str(tmp_path), 'overview_page')
    assert code == 0 and b'checksum is wrong in the chunk at byte' in got


def test_what_is_no_record_has_a_sentence(tmp_path):
    for name, body in {'snappy': None, 'transposed': None, 'cut': 100, 'signature': 64}.items():
        w = riegeli.Writer()
        if name == 'snappy':
            w.records([b'x'], 'snappy')
        else:
            w.records([b'\x22\x01h'], '', b't' if name == 'transposed' else b'r')
        w.pad()
        at = folder(tmp_path / name)
        with open(os.path.join(at, 'h.xplane.riegeli'), 'wb') as f:
            f.write(w.bytes[:body])
    say = {'snappy': 'a compression that is not supported', 'transposed': 'transposed records, which are not supported',
           'cut': 'header at byte 64 is cut off', 'signature': 'the file of records holds none'}
    for name, words in say.items():
        code, _, err = report(str(tmp_path / name), 'overview_page')
        assert code != 0 and words in err, (name, err)


def test_the_list_and_the_pages_take_it_for_a_profile(tmp_path, whole, start):
    riegeli.write(os.path.join(folder(tmp_path), 'worker-1.xplane.riegeli'), [whole])
    d = start('--logdir', str(tmp_path))
    host, = d.api('run', run='r').json()['hosts']
    assert (host['host'], host['state'], host['compressed']) == ('worker-1', 'ready', True)
    assert d.api('tracks', run='r', host='worker-1').status == 200
    assert os.listdir(folder(tmp_path)) == ['worker-1.xplane.riegeli']
