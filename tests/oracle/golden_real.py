"""XProf's answers about the real captures and the generated TPU profiles: how they are kept and compared.

An answer that is short is kept whole and compared by compare.py of the oracle. Of a longer one a digest is kept, made
in the same way of XProf's answer and of ours, so fine that a difference can be found: digest() says what of.
"""
import collections
import gzip
import json
import multiprocessing
import os
import re
import shutil
import sys
import zlib
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARED = os.path.abspath(os.environ.get('SHARED_DIR') or os.path.join(ROOT, '..', 'shared'))
GOLDEN = os.path.join(ROOT, 'tests', 'golden', 'real')
sys.path.insert(0, os.path.join(SHARED, 'oracle'))

import compare  # noqa: E402  pylint: disable=wrong-import-position
import oracle   # noqa: E402  pylint: disable=wrong-import-position

WHOLE = 3000         # characters of canonical JSON; longer answers are digested
TRACE_MAX = 1000000  # characters of a trace; longer ones are not in the test (record_real.py --full keeps them)
LONG_MAX = 2500000   # the same for other answers
DOTS_MAX = 8         # graphs of one module
ALL_OF_THEM = 'while'  # but of these, whose bodies have what is found nowhere else, all
ROWS = 40            # of a table, in one bucket


def unpack(logdir):
    """The profiles as a log directory: one run a capture."""
    def place(run, host):
        folder = os.path.join(logdir, 'plugins', 'profile', run)
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, host)
    real, tpu = (os.path.join(SHARED, 'data', d) for d in ('real', os.path.join('tpu', 'profiles')))
    for name in sorted(os.listdir(real)):
        if name.endswith('.xplane.pb'):
            shutil.copyfile(os.path.join(real, name), place(name[:-len('.xplane.pb')], 'host0.xplane.pb'))
    for run in sorted(os.listdir(tpu)):
        folder = os.path.join(tpu, run)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.endswith('.xplane.pb.gz'):
                with gzip.open(os.path.join(folder, name), 'rb') as f, open(place(run, name[:-3]), 'wb') as g:
                    shutil.copyfileobj(f, g)
    modules(place)


# --- the two compiled programs that no profile has: a run that holds nothing but them ---

def varint(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out + bytes([v]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def modules(place):
    plane, stat = field(1, 1) + field(2, b'/host:metadata'), field(1, 7) + field(2, b'Hlo Proto')
    plane += field(5, field(1, 7) + field(2, stat))
    for number, name in ((11, 'generate'), (12, 'prefill')):
        with gzip.open(os.path.join(SHARED, 'data', 'tpu', 'modules', 'v6e', name + '.hlo.pb.gz'), 'rb') as f:
            proto = f.read()
        meta = field(1, number) + field(2, b'jit_%s(%d)' % (name.encode(), number)) + field(5, field(1, 7) + field(6, proto))
        plane += field(4, field(1, number) + field(2, meta))
    event = field(1, 1) + field(2, 1000) + field(3, 1000)
    host = field(1, 2) + field(2, b'/host:CPU') + field(3, field(1, 1) + field(2, b'main') + field(4, event))
    host += field(4, field(1, 1) + field(2, field(1, 1) + field(2, b'begin')))
    with open(place('modules_v6e', 'host0.xplane.pb'), 'wb') as f:
        f.write(field(1, plane) + field(1, host))


# --- what XProf leaves to chance ---

def settle(request, answer):
    """The answer without what two runs of XProf need not agree about."""
    run, tool = request['run'], request['tool']
    if tool == 'data_csv':
        tool = dict(request['query'])['tag']
        lines = answer.splitlines() if isinstance(answer, str) else []
        if tool == 'megascale_stats':
            return '\n'.join(lines[:1] + sorted(lines[1:]))
        if tool == 'input_pipeline_analyzer':
            return re.sub(r'"[\w.-]+:\d+"', '"CORE"', answer) if isinstance(answer, str) else answer
        return answer
    # Of cores that waited equally long, the one that is named is the first in a hash table. How long it was is compared.
    if tool == 'input_pipeline_analyzer' and isinstance(answer, list) and answer and compare.is_table(answer[0]):
        for row in answer[0].get('rows') or []:
            if row['c'] and row['c'][0].get('v') == 'Core name':
                for cell in row['c'][1:]:
                    cell['v'] = re.sub(r'^[\w.-]+:\d+$', 'CORE', str(cell.get('v')))
    # Rows come in the order of a hash table whose seed differs from process to process.
    if tool == 'megascale_stats' and isinstance(answer, list):
        for table in answer:
            if compare.is_table(table):
                table['rows'] = sorted(table.get('rows') or [], key=lambda r: json.dumps(r['c'][:3], sort_keys=True, default=str))
    # Events that begin together get numbers. XProf merges a host's lines for that as if each were in order of time; these
    # two runs have lines that are not, and which events then meet is an accident of the merge.
    if tool == 'trace_viewer@' and run in ('serve_v5e', 'multislice_v6e_2host') and isinstance(answer, dict):
        for event in answer.get('traceEvents') or []:
            event.pop('z', None)
    # Allocations that are equal are one at the peak; which stands for all is again a hash table's choice.
    if tool == 'memory_profile' and isinstance(answer, dict):
        for per in (answer.get('memoryProfilePerAllocator') or {}).values():
            merge_allocations(per)
    return answer


def merge_allocations(per):
    shots = per.get('memoryProfileSnapshots') or []
    for active in per.get('activeAllocations') or []:
        i = int(active.get('snapshotIndex', 0))
        if int(active.get('numOccurrences', 1)) > 1 and 0 <= i < len(shots):
            meta = dict(shots[i].get('activityMetadata', {}))
            meta.pop('address', None)
            shots[i] = {'activityMetadata': meta}
            active.pop('snapshotIndex', None)


# --- digests ---

def crc(text):
    return '%08x' % zlib.crc32(text.encode('utf8', 'surrogatepass'))


def plain(value):
    """A text of the value that does not depend on how numbers were printed."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, float, Decimal)):
        return '%.9g' % float(value)
    if isinstance(value, dict):
        return '{%s}' % ','.join('%s:%s' % (k, plain(value[k])) for k in sorted(value))
    if isinstance(value, list):
        return '[%s]' % ','.join(plain(v) for v in value)
    return str(value)


class Sums:
    """Of many values of one place: how many, the sum of the numbers, a checksum of the texts, in any order."""

    def __init__(self):
        self.by = {}

    def add(self, place, value):
        n = self.by.setdefault(place, [0, 0, 0.0, 0])
        n[0] += 1
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            number = float(value)
            if number == number:
                n[2] += number
        else:
            n[1] += 1
            n[3] = (n[3] + zlib.crc32(str(value).encode('utf8', 'surrogatepass'))) & 0xffffffff

    def get(self):
        return {k: [v[0], v[1], float('%.10g' % v[2]), v[3]] for k, v in self.by.items()}


def walk(value, place, sums):
    if isinstance(value, dict):
        for k in value:
            walk(value[k], '%s.%s' % (place, k), sums)
    elif isinstance(value, list):
        for v in value:
            walk(v, place + '[]', sums)
    else:
        sums.add(place, value)


def table_digest(table, tool, place, sums):
    """Rows in buckets by what names them, a sum for each column of each bucket; columns that depend on the order of rows
    that tie only as a whole."""
    ids = [c.get('id') for c in table['cols']]
    walk({k: table[k] for k in table if k != 'rows'}, place, sums)
    rows = compare.named_rows(table)
    keys = [k for k in compare.KEYS.get(tool, []) if k in ids] or [c.get('id') for c in table['cols'] if c.get('type') == 'string']
    buckets = max(1, len(rows) // ROWS)
    for row in rows:
        bucket = zlib.crc32('/'.join(plain(row.get(k)) for k in keys).encode('utf8', 'surrogatepass')) % buckets
        for k, v in row.items():
            ranked = compare.RANKED.match(str(k).split('/', 1)[0])
            sums.add('%s.%s' % (place, k) if ranked else '%s{%d}.%s' % (place, bucket, k), v)


def trace_digest(answer):
    """A checksum for each thread, of its events in any order; flows by the events that they join."""
    out, flows = {}, collections.defaultdict(list)
    frames = answer.get('stackFrames') or {}
    for e in answer.get('traceEvents') or []:
        if not e:
            continue
        e = dict(e)
        args = e.get('args')
        if isinstance(args, dict):
            args = {k: v for k, v in args.items() if k != 'uid'}
            if 'sf' in args:
                args['sf'] = compare.frame_text(frames, args['sf'])
            e['args'] = args
        legacy = args.pop('flow', None) if isinstance(args, dict) else None
        first, second = e.pop('bind_id', None), e.pop('id', None)
        flow = first if first is not None else second if second is not None else legacy
        for k in ('sf', 'esf'):
            if k in e:
                e[k] = compare.frame_text(frames, e[k])
        for k in ('ts', 'dur'):
            if k in e:
                e[k] = '%d' % round(float(e[k]) * 1e6)
        key = '%s %s %s' % (e.get('ph'), e.get('pid'), e.get('tid'))
        n = out.setdefault(key, [0, 0])
        n[0] += 1
        n[1] = (n[1] + zlib.crc32(plain(e).encode('utf8', 'surrogatepass'))) & 0xffffffff
        if flow is not None:
            flows[flow].append('%s %s %s %s' % (key, e.get('name'), e.get('ts'), e.get('dur')))
    joined = sorted(crc('\n'.join(sorted(f))) for f in flows.values())
    rest = {k: v for k, v in answer.items() if k not in ('traceEvents', 'stackFrames')}
    return {'threads': out, 'flows': [len(joined), crc(' '.join(joined))], 'rest': json.loads(json.dumps(rest, default=float))}


def text_digest(text):
    """A checksum for each paragraph: of a module's text, for each computation."""
    return [crc(p) for p in re.split(r'\n\n+', text)]


def dot_digest(text):
    """Statements by kind, in any order and without the names of nodes."""
    kinds = collections.defaultdict(list)
    for statement, times in (compare.dot_statements(text) or {}).items():
        kind = 'edge' if ' -> ' in statement.split('[')[0] else 'node' if '[label=' in statement else 'other'
        kinds[kind].append('%d %s' % (times, statement))
    return {k: [len(v), crc('\n'.join(sorted(v)))] for k, v in kinds.items()}


def digest(request, answer):
    mode, tool = request['mode'], request['tool']
    if mode == 'trace' and isinstance(answer, dict):
        return trace_digest(answer)
    if mode == 'trace_pb':
        events = compare.wire.trace_response(answer)
        for e in events['events']:
            e['args'] = {k: v for k, v in e['args'].items() if k not in ('flow_id', 'flow_category', 'serial')}
        threads = collections.Counter('%s %s %s' % (e['ph'], e['pid'], e['tid']) for e in events['events'])
        every = sorted(crc(plain([e['ph'], e['pid'], e['tid'], e['name'], e['ts'], e['dur'], e['args']])) for e in events['events'])
        return {'threads': dict(threads), 'events': crc(' '.join(every)), 'span': events['span']}
    if mode == 'message':
        return [len(answer), '%08x' % zlib.crc32(repr(compare.wire.canonical(answer)).encode())]
    if mode == 'dot':
        return dot_digest(answer)
    if mode == 'pbtxt':
        return crc('\n'.join(sorted(line.strip() for line in answer.splitlines())))
    if mode == 'csv':
        return csv_digest(answer, tool)
    if isinstance(answer, str):
        return text_digest(answer)
    sums = Sums()
    if mode == 'tables' and isinstance(answer, list):
        for i, part in enumerate(answer):
            if compare.is_table(part):
                table_digest(part, tool, '[%d]' % i, sums)
            else:
                walk(part, '[%d]' % i, sums)
    elif mode == 'tables' and compare.is_table(answer):
        table_digest(answer, tool, '', sums)
    else:
        walk(answer, '', sums)
    return sums.get()


def csv_digest(text, tool):
    rows = list(compare.csv.reader(compare.io.StringIO(text)))
    sums = Sums()
    for row in rows[1:]:
        for name, cell in zip(rows[0], row):
            try:
                sums.add(name, float(cell))
            except ValueError:
                sums.add(name, cell)
    return {'columns': rows[:1], 'rows': len(rows) - 1, 'sums': sums.get(), 'tool': tool}


# --- the files ---

def rows_of(path):
    """Requests and their whole answers, as record_real.py wrote them."""
    with open(path, encoding='utf8') as f:
        for head in f:
            yield json.loads(head), f.readline()


def wanted(request, body, dots):
    """Whether the answer is in the test: all are recorded, but the longest would take minutes to compare."""
    if request['tool'] in ('trace_viewer', 'trace_viewer@'):
        return len(body) <= TRACE_MAX
    if request['mode'] == 'dot' and request['tool'] == 'graph_viewer':
        query = dict(request['query'])
        dots[query['module_name']] += 1
        if dots[query['module_name']] > DOTS_MAX and not query['node_name'].startswith(ALL_OF_THEM):
            return False
    return len(body) <= LONG_MAX


def pack(full):
    shutil.rmtree(GOLDEN, ignore_errors=True) if not os.path.exists(os.path.join(GOLDEN, 'README.md')) else None
    os.makedirs(GOLDEN, exist_ok=True)
    total = kept = 0
    for name in sorted(os.listdir(full)):
        if not name.endswith('.json'):
            continue
        out, dots = [], collections.Counter()
        for request, body in rows_of(os.path.join(full, name)):
            total += 1
            if not wanted(request, body, dots):
                continue
            kept += 1
            row = {k: request[k] for k in ('mode', 'tool', 'run', 'path', 'query', 'status', 'headers')}
            if request['status'] == 200 and request['mode'] != 'status':
                if len(body) <= WHOLE:
                    row['whole'] = json.loads(body)
                else:
                    answer = oracle.decode(json.loads(body))
                    row['digest'] = digest(request, settle(request, answer))
            out.append(json.dumps(row, sort_keys=True))
        with open(os.path.join(GOLDEN, name + '.gz'), 'wb') as raw, gzip.GzipFile('', 'wb', 9, raw, mtime=0) as f:
            f.write(('\n'.join(out) + '\n').encode())
    size = sum(os.path.getsize(os.path.join(GOLDEN, n)) for n in os.listdir(GOLDEN))
    print('%d of %d answers kept, %d bytes' % (kept, total, size))


def kept(run):
    with gzip.open(os.path.join(GOLDEN, run + '.json.gz'), 'rt', encoding='utf8') as f:
        return [json.loads(line) for line in f]


def runs():
    return sorted(n[:-len('.json.gz')] for n in os.listdir(GOLDEN) if n.endswith('.json.gz'))


# --- the comparison ---

def differences(base, row):
    """What our server at base answers otherwise than XProf did; [] when nothing."""
    answer = oracle.fetch(base, 'GET', oracle.path_of(row, ''))
    if row['status'] == 0:  # XProf dropped the connection: any error will do
        return [] if answer.status >= 400 or answer.status == 0 else ['status %d where XProf has none' % answer.status]
    if answer.status != row['status']:
        return ['status %d, expected %d' % (answer.status, row['status'])]
    out = []
    for name, want in row['headers'].items():
        got = answer.headers.get(name, '')
        if name == 'content-type':
            want, got = want.split(';')[0], got.split(';')[0]
        if got != want:
            out.append('%s: expected %s, got %s' % (name, want, got))
    if answer.status >= 400 or row['mode'] == 'status':
        return out
    ours = decoded(row['mode'], answer)
    if 'whole' in row:
        theirs = settle(row, oracle.decode(row['whole']))
        ours = settle(row, ours)
        if type(ours) is not type(theirs):
            return out + ['expected %s, got %s' % (type(theirs).__name__, type(ours).__name__)]
        return out + compare.body(row['mode'], row['tool'], theirs, ours, compare.Options())
    try:
        mine = json.loads(json.dumps(digest(row, settle(row, ours))))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        return out + ['the answer has another structure: %r' % e]
    return out + compare.deep(row['digest'], mine, compare.Options(rtol=1e-6, atol=1e-7))


def decoded(mode, answer):
    """oracle.encode and decode, without the detour over decimal numbers."""
    if mode == 'trace_pb':
        return oracle.unzstd(answer.body)
    if mode == 'message':
        return answer.body
    text = answer.body.decode('utf8', 'replace')
    if 'json' in answer.headers.get('content-type', ''):
        try:
            return json.loads(text)
        except ValueError:
            pass
    return text


def check(job):
    """-> (run, {tool: [equal, not]}, lines that say what differs)"""
    base, run = job
    counts, lines = collections.defaultdict(lambda: [0, 0]), []
    for row in kept(run):
        out = differences(base, row)
        counts[row['tool']][bool(out)] += 1
        if out:
            lines.append('%s %s: %s' % (run, oracle.path_of(row, '').split('?')[-1], '; '.join(out[:3])))
    return run, {k: v for k, v in counts.items()}, lines


def main():
    """golden_real.py BASE [RUN...]: what differs, line by line; then a table of how many are equal, by tool."""
    total = collections.defaultdict(lambda: [0, 0])
    with multiprocessing.Pool(2) as pool:
        for _, counts, lines in pool.imap_unordered(check, [(sys.argv[1], run) for run in sys.argv[2:] or runs()]):
            for line in lines:
                print(line)
            for tool, (equal, other) in counts.items():
                total[tool][0] += equal
                total[tool][1] += other
    print('%-26s %8s %8s' % ('tool', 'equal', 'differ'))
    for tool in sorted(total):
        print('%-26s %8d %8d' % (tool, *total[tool]))


if __name__ == '__main__':
    main()
