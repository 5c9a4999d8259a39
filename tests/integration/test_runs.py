"""Where profiles are found, and how soon; what an empty result says."""
import os
import shutil
import subprocess
import time

import daemon


def wait_for(what, limit=10):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.1)
    raise AssertionError('not within %d s' % limit)


def names(d):
    return [r['run'] for r in d.api('runs').json()['runs']]


def test_a_new_run_appears_within_seconds_and_a_deleted_one_goes(start, make, tmp_path):
    root = make('first', '--steps', '1', root=tmp_path)
    d = start('--logdir', root)
    assert names(d) == ['first']
    make('second', '--steps', '1', root=tmp_path)
    wait_for(lambda: 'second' in names(d), 6)
    wait_for(lambda: 'second' in d.compat('runs').json(), 6)
    assert d.loaded('second').json()['events'] > 100
    shutil.rmtree(daemon.run_dir(root, 'second'))
    wait_for(lambda: names(d) == ['first'], 6)


def test_a_profile_written_again_is_seen_anew(start, make, tmp_path):
    root = make('grows', '--steps', '1', root=tmp_path)
    d = start('--logdir', root)
    before = d.loaded('grows').json()['events']
    make('grows', '--steps', '4', root=tmp_path)
    wait_for(lambda: d.loaded('grows').json()['events'] > 2 * before, 10)


def test_every_layout_is_found(start, make, tmp_path):
    root = str(tmp_path)
    make('plain', '--steps', '1', root=root)
    make('nested', '--steps', '1', root=os.path.join(root, 'exp', 'a'))
    make('moved', '--steps', '1', root=root)
    shutil.move(daemon.run_dir(root, 'moved'), os.path.join(root, 'bare'))
    make('packed', '--steps', '1', '--gz', root=root)
    d = start('--logdir', root)
    found = wait_for(lambda: len(names(d)) == 4 and names(d))
    assert set(found) == {'plain', 'exp/a/nested', 'bare', 'packed'}
    events = [d.loaded(run).json()['events'] for run in found]
    assert len(set(events)) == 1 and events[0] > 1000
    assert set(d.compat('runs').json()) == {'plain', 'exp/a/nested', 'packed'}


def test_an_empty_directory_says_what_was_read_found_and_expected(start, tmp_path):
    (tmp_path / 'notes.txt').write_text('nothing here')
    d = start('--logdir', tmp_path)
    answer = d.api('runs').json()
    assert answer['runs'] == [] and answer['total'] == 0
    assert answer['empty']['read'] and '1 file' in answer['empty']['found']
    assert answer['empty']['reason'] == 'other_files'
    assert 'plugins/profile/' in answer['empty']['expected']
    assert d.compat('runs').json() == []
    assert wait_for(lambda: [t for t in d.lines if 'found 1 file' in t and 'expected ' in t and 'plugins/profile/' in t]), d.lines


def test_runs_are_paged_searchable_and_newest_first(start, make, tmp_path):
    days = ['2026_01_%02d_10_00_00' % day for day in range(1, 12)]
    for name in days:
        make(name, '--steps', '1', '--kind', 'python', root=tmp_path)
    d = start('--logdir', tmp_path)
    got, page = [], None
    for _ in range(10):
        answer = d.api('runs', limit=4, **({'page': page} if page else {})).json()
        assert len(answer['runs']) <= 4 and answer['total'] == 11
        got += [r['run'] for r in answer['runs']]
        page = answer['next']
        if not page:
            break
    assert got == days[::-1]
    assert [r['run'] for r in d.api('runs', q='01_07').json()['runs']] == ['2026_01_07_10_00_00']
    assert d.api('runs', q='no such').json()['runs'] == []
    daemon.sentence(d.api('runs', page='nonsense'), 400, 'bad_request')
    daemon.sentence(d.api('runs', limit='0'), 400, 'bad_request', 'limit')
    daemon.sentence(d.api('runs', limit='many'), 400, 'bad_request', 'limit')


def test_a_run_tells_its_hosts(start, make, tmp_path):
    make('pod', '--steps', '1', '--hosts', '3', root=tmp_path)
    d = start('--logdir', tmp_path)
    run = d.api('run', run='pod').json()
    assert [h['host'] for h in run['hosts']] == ['host-0', 'host-1', 'host-2']
    assert all(h['bytes'] > 1000 and not h['compressed'] for h in run['hosts'])
    assert run['location'] == daemon.run_dir(tmp_path, 'pod') and {h['state'] for h in run['hosts']} == {'ready'}
    daemon.sentence(d.api('tracks', run='pod'), 400, 'bad_request', 'host')
    first, second = '2026_01_31_10_00_00', '2026_01_31_10_00_02'
    for name, host in ((first, 'host-0'), (second, 'host-1')):
        os.makedirs(daemon.run_dir(tmp_path, name))
        os.link(daemon.profile(tmp_path, 'pod', host), daemon.profile(tmp_path, name, host))
    both = first + '//' + second
    assert wait_for(lambda: d.api('runs').json()['joins']) == [{'run': both, 'hosts': 2, 'span_ms': 2000}]
    assert [h['host'] for h in d.api('run', run=both).json()['hosts']] == ['host-0', 'host-1']
    figures = [{m['id']: m['value'] for m in d.api('report', run=r, tool='overview_page').json()['metrics']} for r in (both, first)]
    assert (figures[0]['hosts'], figures[1]['hosts']) == (2, 1) and figures[0]['cores'] == 2 * figures[1]['cores']
    assert d.loaded(both, host='host-1').json() == d.loaded(second, host='host-1').json()
    daemon.sentence(d.api('run', run=both + '//pod'), 400, 'bad_request', 'host-0')


def facts(d, **kw):
    return {r['run']: r['facts'] for r in d.api('runs', **kw).json()['runs']}


def test_figures_are_looked_up_by_and_by_kept_and_ordered_by(start, make, tmp_path):
    root, kept = tmp_path / 'logs', tmp_path / 'kept'
    kept.mkdir()
    make('long', '--steps', '9', root=root)
    make('short', '--steps', '2', root=root)
    for run, text in (('nothing', b''), ('noise', b'no profile at all')):
        os.makedirs(daemon.run_dir(root, run))
        with open(daemon.profile(root, run, 'h'), 'wb') as f:
            f.write(text)
    d = start('--logdir', root, '--figures-limit', '64MiB', '--figures-dir', kept)
    assert d.api('runs').json()['figures_limit'] == 64 << 20
    known = wait_for(lambda: all(facts(d)[r] for r in ('long', 'short')) and facts(d), 20)
    report = {m['id']: m['value'] for m in d.api('report', run='long', tool='overview_page').json()['metrics']}
    assert known['long']['step_time_mean'] == report['step_time_mean'] and known['long']['cores'] == report['cores']
    assert known['long']['dropped_events'] == 0 and known['long']['why']['peak_memory']
    states = {r['run']: (r['state'], r['note']) for r in d.api('runs').json()['runs']}
    assert states['nothing'] == ('unreadable', 'the file is empty') and states['noise'][0] == 'unreadable' and states['noise'][1]
    assert states['long'] == ('ready', '')
    order = [r['run'] for r in d.api('runs', sort='-size').json()['runs']]
    assert order == ['long', 'short', 'noise', 'nothing']
    by_step = [r['run'] for r in d.api('runs', sort='step').json()['runs']][:2]
    assert by_step == sorted(by_step, key=lambda r: known[r]['step_time_mean'])
    one = d.api('runs', sort='-size', limit=1).json()
    assert d.api('runs', sort='-size', limit=1, page=one['next']).json()['runs'][0]['run'] == 'short'
    daemon.sentence(d.api('runs', sort='size', page=one['next']), 400, 'bad_request', 'order')
    daemon.sentence(d.api('runs', sort='colour'), 400, 'bad_request', 'colour')
    assert set(facts(d, q='size>1kB')) == {'long', 'short'} and set(facts(d, q='state:unreadable')) == {'nothing', 'noise'}
    got = d.api('file', run='long', host='host-0')
    with open(daemon.profile(root, 'long', 'host-0'), 'rb') as f:
        assert got.status == 200 and got.body == f.read()
    assert got.headers['content-disposition'] == 'attachment; filename="host-0.xplane.pb"; filename*=UTF-8\'\'host-0.xplane.pb'
    daemon.sentence(d.api('file', run='long', host='../x'), 404, 'not_found')
    d.stop()
    again = start('--logdir', root, '--figures-dir', kept)
    assert facts(again)['long'] == known['long']
    code, text = daemon_refuses('--logdir', root, '--figures-dir', root)
    assert code == 2 and '--figures-dir' in text and 'beside profiles' in text


def daemon_refuses(*flags):
    p = subprocess.run([daemon.XPROFD, *map(str, flags), '--port', '0'], capture_output=True, text=True, timeout=20)
    return p.returncode, p.stderr
