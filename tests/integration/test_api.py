"""Our API on a sound profile, held against an independent reading of the same file: nothing is lost, nothing
is hidden without being counted, and times are exact to the picosecond."""
import collections
import json
import os
import time
import zlib

import daemon
import pytest
import xspace

HOST = dict(run='sample', host='host-0')


@pytest.fixture(scope='module')
def truth(sample):
    """(plane name, line name, line position) -> [(begin, duration, name)] of the file."""
    out = {}
    for plane in xspace.read(daemon.profile(sample.root, 'sample')):
        for i, line in enumerate(plane.lines):
            out[plane.name, line.name, i] = [(b, d, plane.names[m]) for b, d, m in line.events]
    assert sum(map(len, out.values())) > 20000
    return out


@pytest.fixture(scope='module')
def tracks(sample):
    r = sample.loaded('sample')
    assert r.status == 200
    return r.json()


@pytest.fixture(scope='module')
def lines(tracks):
    """line number -> (plane name, line name, position in plane) for lines that come from the file."""
    out, n = {}, collections.Counter()
    for plane in tracks['planes']:
        for line in sorted(plane['lines'], key=lambda x: x['line']):
            if not line['derived']:
                out[line['line']] = (plane['name'], line['name'], n[plane['name']])
                n[plane['name']] += 1
    return out


def window(sample, **kw):
    r = sample.api('window', **HOST, **kw)
    assert r.status == 200 and r.type == 'application/x-protobuf', r
    w = xspace.Window(r.body)
    assert not w.loading and w.hidden <= w.events
    assert w.hidden == w.events - sum(len(row.rects) for row in w.rows)
    for row in w.rows:
        assert sum(r[4] for r in row.rects) == row.events
        for a, b in zip(row.rects, row.rects[1:]):
            assert a[0] + a[1] <= b[0]
    return w


def test_tracks_hold_every_event_of_the_file(tracks, lines, truth):
    numbers = {x['line']: x for p in tracks['planes'] for x in p['lines']}
    assert set(lines.values()) == set(truth)
    for number, key in lines.items():
        assert numbers[number]['events'] == len(truth[key]), key
        if truth[key]:
            assert numbers[number]['begin_ps'] == min(e[0] for e in truth[key])
            assert numbers[number]['end_ps'] == max(e[0] + e[1] for e in truth[key])
    assert not tracks['partial'] and tracks['damage'] is None and tracks['bytes_done'] == tracks['bytes_total']


def test_the_whole_profile_counts_every_event(sample, truth, lines):
    w = window(sample, px=1500)
    per_line = collections.Counter()
    for row in w.rows:
        per_line[row.line] += row.events
    for number, key in lines.items():
        assert per_line[number] == len(truth[key]), key


def overlap(events, t0, t1):
    """An event without length counts where it begins."""
    return [e for e in events if e[0] < t1 and (e[0] + e[1] > t0 or (e[1] == 0 and e[0] >= t0))]


@pytest.mark.parametrize('part', [(0.10, 0.1002), (0.5, 0.50005), (0.731, 0.7311), (0.99, 0.9901)], ids=str)
def test_zooming_in_shows_every_event_exactly(sample, tracks, truth, lines, part):
    span = tracks['end_ps'] - tracks['begin_ps']
    t0, t1 = (tracks['begin_ps'] + int(span * p) for p in part)
    w = window(sample, t0=t0, t1=t1, px=16384, max_bytes=4194304)
    shown = collections.defaultdict(list)
    for row in w.rows:
        shown[row.line] += row.rects
    found = 0
    for number, key in lines.items():
        want = sorted(overlap(truth[key], t0, t1))
        assert sum(r[4] for r in shown[number]) == len(want), key
        if not any(r[4] > 1 for r in shown[number]):
            assert sorted((r[0], r[1]) for r in shown[number]) == [(e[0], e[1]) for e in want], key
            assert sorted(r[2] for r in shown[number]) == sorted(e[2][:120] for e in want), key
            found += len(want)
    assert found > 0


def test_an_answer_stays_below_its_limit(sample, tracks):
    for limit in (4096, 20000, 65536):
        r = sample.api('window', **HOST, px=16384, max_bytes=limit, t0=tracks['begin_ps'], t1=tracks['end_ps'])
        assert r.status == 200 and len(r.body) <= limit
        w = xspace.Window(r.body)
        assert w.events > 20000


def test_rows_choose_lines(sample, lines):
    for number in list(lines)[:4]:
        w = window(sample, px=700, rows=number)
        assert {row.line for row in w.rows} <= {number}


def test_an_event_in_full(sample, truth, lines):
    ops = [n for n, key in lines.items() if key[:2] == ('/device:TPU:0', 'XLA Ops')][0]
    rects = [r for row in window(sample, px=1500, rows=ops).rows for r in row.rects]
    longest = max(rects, key=lambda r: r[1])
    e = sample.api('event', **HOST, id=longest[3]).json()
    assert (e['begin_ps'], e['duration_ps'], e['display_name'] or e['name']) in \
        [(b, d, n) for b, d, n in truth[lines[ops]]]
    assert e['plane_name'] == '/device:TPU:0' and e['line_name'] == 'XLA Ops' and e['id'] == longest[3]
    args = {a['name']: a for a in e['args']}
    assert args['device_offset_ps']['from'] == 'event' and args['device_offset_ps']['type'] == 'uint64'
    assert args['hlo_category']['value'] and args['hlo_category']['from'] == 'metadata'
    assert args['memory_access_breakdown']['value'] is None and args['memory_access_breakdown']['bytes'] > 0
    assert int(args['program_id']['value']) == 5912043377018274101
    follower = sample.api('event', **HOST, id=e['id'], step='next').json()
    assert follower['begin_ps'] >= e['begin_ps'] and follower['id'] != e['id']
    back = sample.api('event', **HOST, id=follower['id'], step='prev').json()
    assert back['id'] == e['id']


def test_flows_lead_from_the_launch_to_the_module(sample):
    hit = sample.api('search', **HOST, q='name:DoEnqueueProgram', limit=1).json()['hits'][0]
    e = sample.api('event', **HOST, id=hit['id']).json()
    out = [f for f in e['flows'] if f['direction'] == 'out']
    assert out and out[0]['category'] == 'tpu_launch' and out[0]['ids']
    target = sample.api('event', **HOST, id=out[0]['ids'][0]).json()
    assert target['line_name'] == 'XLA Modules' and target['begin_ps'] > e['begin_ps']
    assert any(f['direction'] == 'in' and e['id'] in f['ids'] for f in target['flows'])


def all_events(truth):
    return [(key, e) for key, events in truth.items() for e in events]


@pytest.mark.parametrize('q,matches', [
    ('all-reduce', lambda k, e: 'all-reduce' in e[2].lower()),
    ('ALL-REDUCE.7', lambda k, e: 'all-reduce.7' in e[2].lower()),
    ('fusion -fusion.2', lambda k, e: 'fusion' in e[2].lower() and 'fusion.2' not in e[2].lower()),
    ('"tpu::System"', lambda k, e: 'tpu::system' in e[2].lower()),
    ('dur>1ms plane:TPU:1', lambda k, e: e[1] > 10**9 and 'tpu:1' in k[0].lower()),
    ('dur<20us line:steps', lambda k, e: e[1] < 20 * 10**6 and 'steps' in k[1].lower()),
    ('no such name', lambda k, e: False),
])
def test_search_counts_what_is_there(sample, truth, lines, q, matches):
    rows = ','.join(str(n) for n in sorted(lines))
    answer = sample.api('search', **HOST, q=q, limit=100, rows=rows).json()
    want = sorted(e for k, e in all_events(truth) if matches(k, e))
    assert answer['total'] == len(want), answer['total']
    assert sum(x['count'] for x in answer['lines']) == len(want)
    assert sorted(h['begin_ps'] for h in answer['hits']) == [e[0] for e in want[:100]]
    assert answer['more'] == (len(want) > 100)


def test_search_steps_through_all_hits_both_ways(sample):
    def walk(direction):
        ids, more = [], {}
        for _ in range(200):
            answer = sample.api('search', **HOST, q='name:PjitFunction', limit=5, dir=direction, **more).json()
            ids += [h['id'] for h in answer['hits']]
            if not answer['hits'] or not answer['more']:
                return ids, answer['total']
            last = answer['hits'][-1]
            more = dict(after=last['begin_ps'], after_id=last['id'])
        raise AssertionError('it never ends')
    forward, total = walk('next')
    backward, _ = walk('prev')
    assert len(forward) == len(set(forward)) == total == 12
    assert sorted(backward) == sorted(forward)


@pytest.mark.parametrize('part', [(0, 1), (0.3, 0.34)], ids=str)
def test_aggregate_sums_all_events(sample, tracks, truth, lines, part):
    span = tracks['end_ps'] - tracks['begin_ps']
    t0, t1 = (tracks['begin_ps'] + int(span * p) for p in part)
    ops = [n for n, key in lines.items() if key[:2] == ('/device:TPU:2', 'XLA Ops')][0]
    answer = sample.api('aggregate', **HOST, rows=ops, t0=t0, t1=t1, limit=1000).json()
    want = collections.defaultdict(list)
    for b, d, name in overlap(truth[lines[ops]], t0, t1):
        want[name].append(min(b + d, t1) - max(b, t0))
    assert answer['events'] == sum(map(len, want.values())) and answer['names'] == len(want)
    for row in answer['rows']:
        lengths = want.pop(row['name'])
        assert row['count'] == len(lengths) and row['total_ps'] == sum(lengths)
        assert row['min_ps'] == min(lengths) and row['max_ps'] == max(lengths)
        assert abs(row['mean_ps'] - sum(lengths) / len(lengths)) <= 1
        assert min(lengths) <= row['p50_ps'] <= row['p99_ps'] <= max(lengths)
        assert 0 <= row['self_ps'] <= row['total_ps']
    assert not want and answer['rest']['names'] == 0
    cut = sample.api('aggregate', **HOST, rows=ops, t0=t0, t1=t1, limit=3).json()
    assert len(cut['rows']) == 3 and cut['rest']['names'] == answer['names'] - 3
    assert sum(r['count'] for r in cut['rows']) + cut['rest']['count'] == answer['events']


def test_gzipped_profiles_give_the_same_answers(start, sample, make, tmp_path, tracks):
    make('sample', '--steps', '12', '--gz', root=tmp_path)
    d = start('--logdir', tmp_path)
    packed = d.loaded('sample').json()
    assert packed['events'] == tracks['events'] and packed['end_ps'] == tracks['end_ps']
    assert d.api('window', **HOST, px=900).body == sample.api('window', **HOST, px=900).body
    hit = d.api('search', **HOST, q='all-reduce', limit=1).json()['hits'][0]
    assert d.api('event', **HOST, id=hit['id']).json() == sample.api('event', **HOST, id=hit['id']).json()


# --- lines that are made, not read ---

SCOPED = dict(run='scoped', host='host-0')
DERIVED_ID = 1 << 52


@pytest.fixture(scope='module')
def scoped(tmp_path_factory):
    """A server with a profile of which lines are derived: (daemon, the answer to tracks with them)."""
    root = str(tmp_path_factory.mktemp('scoped'))
    ops = [(i % 2, i * 1000000, 900000, 'jit(f)/layer%d/%s:' % (i // 10 % 7, ('dot_general', 'add')[i % 2]))
           for i in range(700)]
    body = xspace.plane('/device:TPU:0', ['fusion.1', 'add.2'], {'XLA Ops': ops})
    os.makedirs(daemon.run_dir(root, 'scoped'))
    with open(daemon.profile(root, 'scoped'), 'wb') as f:
        f.write(body)
    d = daemon.Daemon('--logdir', root)
    yield d, d.api('tracks', **SCOPED, wait='all', derived=1).json()
    d.stop()


def made_lines(scoped):
    return [x for p in scoped[1]['planes'] for x in p['lines'] if x['derived']]


def test_derived_lines_follow_those_of_the_file(scoped):
    d, t = scoped
    made = made_lines(scoped)
    assert [x['name'] for x in made] == ['Framework Name Scope', 'Framework Ops']
    assert t['lines_total'] == 1 and t['derived_total'] == 2 and t['rows_total'] == 4
    assert [x['line'] for x in made] == [1, 2] and all(len(x['how']) > 20 for x in made)
    only = d.api('tracks', **SCOPED, derived='only').json()
    assert [x for p in only['planes'] for x in p['lines']] == made
    usual = d.api('tracks', **SCOPED).json()
    assert not any(x['derived'] for p in usual['planes'] for x in p['lines']) and 'derived_total' not in usual


def test_every_query_knows_derived_lines(scoped):
    d, _ = scoped
    for line in made_lines(scoped):
        rows = dict(SCOPED, rows=line['line'])
        w = xspace.Window(d.api('window', **rows, px=16384, max_bytes=1 << 20).body)
        assert w.events == line['events'] > 0
        a = d.api('aggregate', **rows, limit=1000).json()
        assert a['events'] == line['events'] == sum(x['count'] for x in a['rows'])
        hits = d.api('search', **rows, q='-nothing', limit=1000).json()
        assert hits['total'] == line['events']
        by_id = {h['id']: h for h in hits['hits']}
        for row in w.rows:
            for begin, duration, name, event, count in row.rects:
                e = d.api('event', **SCOPED, id=event).json()
                assert e['id'] == event >= DERIVED_ID and e['derived'] and e['line'] == line['line']
                assert (e['display_name'] or e['name']) == name == by_id[event]['name']
                assert count > 1 or (e['begin_ps'], e['duration_ps']) == (begin, duration)
        longest = max(a['rows'], key=lambda x: x['max_ps'])
        e = d.api('event', **SCOPED, id=longest['longest_id']).json()
        assert e['duration_ps'] == longest['max_ps'] and e['flows'] == []


def test_merged_derived_events_lead_to_the_longest(scoped):
    d, _ = scoped
    for line in made_lines(scoped):
        for row in xspace.Window(d.api('window', **SCOPED, rows=line['line'], px=2).body).rows:
            for begin, duration, name, event, count in row.rects:
                e = d.api('event', **SCOPED, id=event).json()
                assert begin <= e['begin_ps'] and e['begin_ps'] + e['duration_ps'] <= begin + duration
                assert (e['display_name'] or e['name']) == name


def test_derived_events_have_neighbours(scoped):
    d, _ = scoped
    for line in made_lines(scoped):
        first = d.api('search', **SCOPED, rows=line['line'], q='-nothing', limit=1).json()['hits'][0]['id']
        e, seen = d.api('event', **SCOPED, id=first).json(), [first]
        while e['next'] is not None:
            e = d.api('event', **SCOPED, id=e['id'], step='next').json()
            assert e['previous'] == seen[-1]
            seen.append(e['id'])
        assert len(set(seen)) == line['events']


def test_what_is_recorded_is_counted_without_what_is_derived(scoped):
    d, t = scoped
    assert d.api('search', **SCOPED, q='-nothing').json()['total'] == t['events'] == 700
    made = sum(x['events'] for x in made_lines(scoped))
    assert d.api('search', **SCOPED, q='-nothing', derived=1).json()['total'] == 700 + made
    assert d.api('aggregate', **SCOPED, derived=1).json()['events'] == 700 + made
    assert xspace.Window(d.api('window', **SCOPED).body).events == 700


def test_derived_lines_and_events_that_are_not_there(scoped):
    d, _ = scoped
    daemon.sentence(d.api('window', **SCOPED, rows=3), 400, 'bad_request', 'line 3')
    daemon.sentence(d.api('event', **SCOPED, id=DERIVED_ID + 10**9), 404, 'not_found')
    daemon.sentence(d.api('event', **SCOPED, id=(1 << 64) - 1), 404, 'not_found')
    daemon.sentence(d.api('search', **SCOPED, q='a', derived='x'), 400, 'bad_request', 'derived')


def test_the_host_may_be_left_out(sample):
    assert sample.api('tracks', run='sample').json() == sample.api('tracks', **HOST).json()


def test_the_project_prefix_is_the_same_api(sample):
    a, b = sample.get('/p/local/api/v1/runs'), sample.api('runs')
    assert a.status == 200 and a.json() == b.json()


def test_compatible_routes_at_the_root_and_below_the_prefix(sample):
    for route in ('runs', 'hosts?run=sample&tag=trace_viewer@', 'run_tools?run=sample', 'version', 'config'):
        a, b = sample.get('/' + route), sample.get(daemon.COMPAT + '/' + route)
        assert a.status == 200 and a.body == b.body, route


def test_a_known_trace_is_sent_as_it_was_until_the_profile_is_another(start, make, tmp_path):
    make('run', '--steps', '4', root=tmp_path)
    d, gzip = start('--logdir', tmp_path), {'accept-encoding': 'gzip'}
    path = daemon.COMPAT + '/data?' + daemon.query(run='run', tag='trace_viewer@', hosts='host-0')
    first = d.get(path, gzip)
    assert first.status == 200 and first.headers['content-encoding'] == 'gzip'
    for _ in range(3):
        again = d.get(path, gzip)
        assert again.body == first.body and again.headers['etag'] == first.headers['etag']
    assert d.get(path).json() == json.loads(zlib.decompress(first.body, 31))
    head = d.request('HEAD', path, gzip)
    assert head.body == b'' and head.headers['content-length'] == str(len(first.body))
    tag = dict(gzip, **{'if-none-match': first.headers['etag']})
    assert d.get(path, tag).status == 304
    ids = {d.get(path, gzip).headers['x-request-id'] for _ in range(2)}
    assert len(ids) == 2 and d.api('status').json()['known'] >= 5
    make('run', '--steps', '5', root=tmp_path)
    end = time.monotonic() + 20
    while d.get(path, tag).status == 304:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert d.get(path, gzip).body != first.body


def test_the_trace_has_every_event(sample, truth):
    trace = sample.trace('sample', hosts='host-0', resolution=8000).json()
    shown = [e for e in trace['traceEvents'] if e.get('ph') == 'X']
    ops = sum(len(v) for k, v in truth.items() if k[1] == 'XLA Ops')
    assert len([e for e in shown if e['name'].startswith(('fusion', 'while', 'all-reduce'))]) > 0.5 * ops
    assert trace['returnedEventsSize'] >= len(shown)
