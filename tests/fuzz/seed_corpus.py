#!/usr/bin/env python3
"""Writes the hand-made part of tests/fuzz/corpus/. Files that a fuzzer found lie beside them and stay.

    tests/fuzz/seed_corpus.py
"""
import gzip
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, 'corpus')
sys.path.insert(0, os.path.join(HERE, '..', 'integration'))

import riegeli  # noqa: E402


def varint(v):
    v &= (1 << 64) - 1
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out + bytes([v]))


def num(field, v):
    return varint(field << 3) + varint(v)


def sub(field, b):
    return varint(field << 3 | 2) + varint(len(b)) + b


def double(field, v):
    return varint(field << 3 | 1) + struct.pack('<d', v)


def stat(field, i, value):
    return sub(field, num(1, i) + value)


def event(meta, offset, duration, *stats):
    return sub(4, num(1, meta) + num(2, offset) + num(3, duration) + b''.join(stats))


def line(i, name, ts, *events, more=b''):
    return sub(3, num(1, i) + sub(2, name) + num(3, ts) + b''.join(events) + more)


def event_meta(i, name, *stats, display=b''):
    return sub(4, num(1, i) + sub(2, num(1, i) + sub(2, name) + (sub(4, display) if display else b'') + b''.join(stats)))


def stat_meta(i, name):
    return sub(5, num(1, i) + sub(2, num(1, i) + sub(2, name)))


def plane(i, name, *parts):
    return sub(1, num(1, i) + sub(2, name) + b''.join(parts))


def profiles():
    every_stat = [stat(4, 1, double(2, 1.5)), stat(4, 2, num(3, 2**64 - 1)), stat(4, 3, num(4, -7)),
                  stat(4, 4, sub(5, b'text')), stat(4, 5, sub(6, b'\x00\xff')), stat(4, 6, num(7, 1))]
    tpu = plane(1, b'/device:TPU:0',
                line(1, b'Steps', 0, event(1, 0, 1000)),
                line(2, b'XLA Ops', 0, event(2, 0, 500, *every_stat), event(3, 100, 200), event(2, 600, 300)),
                event_meta(1, b'0'), event_meta(2, b'%fusion.1 = f32[] fusion()', stat(5, 1, sub(5, b'loop')), display=b'fusion.1'),
                event_meta(3, b'add'), stat_meta(1, b'hlo_category'), stat_meta(2, b'flow'),
                stat(6, 1, sub(5, b'TPU v6 Lite')))
    host = plane(0, b'/host:CPU', line(7, b'main/7', 212990, event(1, 5, 50, stat(4, 1, num(4, 3))),
                                       sub(4, num(1, 1) + num(5, 12) + num(3, 900))),
                 event_meta(1, b'train'), stat_meta(1, b'step_num'))
    whole = tpu + host + sub(4, b'worker-0') + sub(2, b'an error') + sub(3, b'a warning')
    yield 'empty', b''
    yield 'whole', whole
    yield 'cut_in_event', whole[:len(tpu) // 3]
    yield 'cut_in_meta', whole[:len(tpu) - 40]
    yield 'cut_in_length', tpu[:2]
    yield 'unknown_fields', num(77, 5) + double(78, 2.0) + sub(79, b'x' * 300) + varint(80 << 3 | 5) + b'abcd' + whole
    yield 'group', varint(9 << 3 | 3) + num(1, 5) + varint(9 << 3 | 4) + whole
    yield 'group_open', varint(9 << 3 | 3) * 120
    yield 'late_fields', sub(1, sub(3, event(1, 0, 5) + num(1, 3) + num(3, 9) + sub(2, b'late')) + sub(2, b'name last') + num(1, 4))
    yield 'long_varints', plane(1, b'p', sub(3, sub(4, b'\x08' + b'\xff' * 9 + b'\x01' + b'\x10' + b'\x80' * 9 + b'\x00')))
    yield 'varint_of_11', plane(1, b'p', sub(3, sub(4, b'\x08' + b'\xff' * 10 + b'\x01')))
    yield 'negative', plane(1, b'p', line(1, b'l', -5, event(-1, -2, -3), event(2**63, 2**63 - 1, 2**63 - 1)))
    yield 'field_zero', b'\x02\x01x' + whole
    yield 'wrong_types', sub(1, double(1, 3.0) + num(2, 3) + sub(3, sub(1, b'x') + num(4, 9)) + num(4, 1) + double(6, 1.0))
    yield 'repeated_scalars', sub(1, num(1, 1) + num(1, 2) + sub(2, b'a') + sub(2, b'b') + sub(3, num(3, 1) + num(3, 2)))
    yield 'length_leaves_parent', sub(1, varint(3 << 3 | 2) + varint(500) + b'short')
    yield 'length_huge', varint(1 << 3 | 2) + varint(2**63) + b'x'
    yield 'long_name', plane(1, b'n' * 5000, line(1, b'm' * 9000, 0, event(1, 0, 1)), event_meta(1, b'k' * 5000))
    yield 'big_stat', plane(1, b'p', line(1, b'l', 0, event(1, 0, 1, stat(4, 1, sub(5, b's' * 70000))), event(1, 2, 3)))
    yield 'big_meta', plane(1, b'p', event_meta(1, b'n', stat(5, 1, sub(6, b'b' * 70000))), line(1, b'l', 0, event(1, 0, 1)))
    yield 'duplicate_meta', plane(1, b'p', event_meta(1, b'a'), event_meta(1, b'b'), line(1, b'l', 0, event(1, 0, 1)))
    yield 'map_without_key', sub(1, sub(4, sub(2, num(1, 5) + sub(2, b'x'))) + sub(5, num(1, 6)) + sub(4, b''))
    yield 'overlaps', plane(1, b'p', line(1, b'l', 0, *[event(1, i, 50 - i) for i in range(20)]),
                            line(2, b'm', 0, *[event(1, i, 50) for i in range(20)]),
                            line(3, b'disorder', 0, *[event(1, (i * 7919) % 101, 9) for i in range(40)]), event_meta(1, b'e'))
    yield 'wall_clock', plane(1, b'p', line(1, b'l', 0, event(1, 0, 5)), line(2, b'w', 1767225600000000000, event(1, 7, 5)),
                              event_meta(1, b'e')) + plane(
        2, b'Task Environment', stat_meta(1, b'profile_start_time'), stat(6, 1, num(3, 1767225599999000000)))
    yield 'flows', plane(1, b'/host:CPU', line(1, b'a', 0, event(1, 0, 9, stat(4, 1, num(4, 7)), stat(4, 2, num(4, 99)))),
                         line(2, b'b', 0, event(1, 5, 9, stat(4, 3, num(4, 7)), stat(4, 4, num(4, 99)))), event_meta(1, b'e'),
                         stat_meta(1, b'_pt'), stat_meta(2, b'_p'), stat_meta(3, b'_ct'), stat_meta(4, b'_c'))


def write(target, name, data):
    folder = os.path.join(CORPUS, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(data)


def names():
    """Of kernels: packs of none whose types have a place for what points to them, and classes of no name."""
    write('kernel_name', 'empty_pack_pointer', b'_Z1fIJEEvPDpPFvT_E')
    write('kernel_name', 'empty_pack_member', b'_Z1fIJEEvM1CDpPFvT_E')
    write('kernel_name', 'empty_pack_array', b'_Z1fIJEEvPDpA4_PFvT_E')
    write('kernel_name', 'no_class', b'C1v')


def main():
    names()
    for i, (name, data) in enumerate(profiles()):
        write('decoder', name, bytes([i * 11 & 255]) + data)
        if len(data) < 6000:
            write('records', 'twice_' + name, b'\1' + data + data)
        if len(data) < 20000:
            write('load', name, bytes([i * 7 & 255, i * 13 & 255]) + data)
    for seed in range(8):
        random.seed(seed)
        orders = [bytes([0, seed, 1, 0]), bytes([1, 2, seed, 0])]
        orders += [bytes([2, i, i, i]) for i in range(16)]
        orders += [bytes([random.choice((10, 26, 42, 6, 7, 1, 2, 4, 9)), random.randrange(256), random.randrange(256),
                          random.randrange(256)]) for _ in range(60 + 40 * seed)]
        write('built', 'mixed_%d' % seed, bytes([seed * 31, seed * 17]) + b''.join(orders))
    text = b'some text, repeated. ' * 400
    packed = gzip.compress(text, mtime=0)
    for name, data in (('whole', packed), ('two_members', packed + gzip.compress(b'second', mtime=0)), ('cut', packed[:40]),
                       ('empty', b''), ('no_gzip', b'plain'), ('empty_member', gzip.compress(b'', mtime=0)),
                       ('bad_crc', packed[:-6] + b'\0\0' + packed[-4:]), ('garbage_after', packed + b'garbage'),
                       ('zeros_after', packed + b'\0' * 600), ('bomb', gzip.compress(b'\0' * (6 << 20), mtime=0)),
                       ('stored', gzip.compress(text[:2000], 0, mtime=0)),
                       ('with_name', packed[:3] + b'\x08' + packed[4:10] + b'name.pb\0' + packed[10:])):
        write('gz', name, b'\x12\x34' + data)
    one, more = b'\x22\x01h', [sub(1, sub(2, b'p')), sub(1, sub(2, b'q'))]
    for kind in ('', 'brotli', 'snappy'):
        w = riegeli.Writer()
        w.records([one, *more], kind)
        w.records([one], kind)
        write('records', 'file_' + (kind or 'plain'), b'\0' + w.bytes)
        write('records', 'cut_' + (kind or 'plain'), b'\0' + w.bytes[:-3])
    w = riegeli.Writer()
    w.records([one], chunk=b't')
    w.records([one], '')
    write('records', 'file_transposed', b'\0' + w.bytes)
    for name, data in (('usual', b'run=a%2Fb&host=w+0&t0=-5\n/data/plugin/profile/runs\nlocalhost:8791'),
                       ('stray_percent', b'run=%&run=%4&x=%zz&&=&a\n/%41/%\n127.0.0.1'),
                       ('nul', b'run=%00\n/a%00b\n[::1]:80'), ('climb', b'\n/a/../b/%2e%2e/c\n..'),
                       ('hosts', b'run=run&run=2\n//\nfoo.lab.example.'), ('rebind', b'\n/\nevil.test:8791'),
                       ('bracket', b'\n/\n[::1'), ('port', b'\n/\nlocalhost:80x')):
        write('http_query', name, data)
    for name, data in (('text', b'plain'), ('escapes', b'"\\\b\f\n\r\t\x01\x7f</script>'),
                       ('utf8', 'äß€😀\u2028'.encode()), ('cut', b'\xe2\x82'), ('overlong', b'\xc0\xaf\xe0\x80\xaf'),
                       ('surrogate', b'\xed\xa0\x80'), ('beyond', b'\xf5\x80\x80\x80\xf4\x90\x80\x80'),
                       ('nan', struct.pack('<d', float('nan'))), ('tiny', struct.pack('<d', 5e-324)),
                       ('min', struct.pack('<q', -2**63)), ('nul', b'a\0b')):
        write('json', name, data)
    for name, data in (('zero', b'0'), ('negative', b'-5'), ('nan', b'NaN'), ('huge', b'99999999999999999999'),
                       ('min', b'-9223372036854775808'), ('window', b'1&2'), ('reversed', b'2&1'), ('rows', b'0,3,7-12'),
                       ('rows_reversed', b'9-2'), ('rows_many', b'0-4294967295'), ('rows_repeat', b'1,1,1-3,2'),
                       ('rows_odd', b',,-1-,'), ('space', b' 1'), ('plus', b'+1'), ('exponent', b'1e3'), ('empty', b'')):
        write('window_args', name, data)


if __name__ == '__main__':
    main()
