"""XProf's routes that start something: generate_cache loads runs ahead, capture_profile captures nothing yet."""
import os
import time

import daemon


def post(d, what, **kw):
    return d.request('POST', daemon.COMPAT + '/' + what + ('?' + daemon.query(**kw) if kw else ''))


def parts(d):
    return d.api('status').json()['parts']


def test_generate_cache_loads_all_hosts_with_nobody_looking(start, make, tmp_path):
    root = make('ahead', '--steps', '2', root=tmp_path)
    os.link(daemon.profile(root, 'ahead'), daemon.profile(root, 'ahead', 'host-1'))
    d = start('--logdir', root)
    assert parts(d) == 0
    r = post(d, 'generate_cache', session_path=daemon.run_dir(root, 'ahead'))
    assert r.status == 202 and r.json()['status'] == 'ACCEPTED'
    end = time.monotonic() + 20
    while parts(d) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_generate_cache_of_many_runs_ends_with_the_server(start, make, tmp_path):
    root = make('one', '--steps', '8', root=tmp_path)
    d = start('--logdir', root)
    for _ in range(30):
        assert post(d, 'generate_cache', session_path=daemon.run_dir(root, 'one')).status == 202
    assert d.stop() == 0


def test_generate_cache_refuses_as_xprof_does(sample):
    there = daemon.run_dir(sample.root, 'sample')
    assert sample.compat('generate_cache', session_path=there).status == 405
    assert post(sample, 'generate_cache').status == 400
    assert post(sample, 'generate_cache', session_path=there + '-not').status == 404
    r = post(sample, 'generate_cache', session_path=there, tools='no_such_tool, ')
    assert r.status == 400 and 'No valid XPlane tools' in r.text()
    assert post(sample, 'generate_cache', session_path=there, tools='x, overview_page').status == 202


def test_capture_profile_says_that_nothing_was_captured(sample):
    r = sample.compat('capture_profile', service_addr='127.0.0.1:1', duration='100')
    assert r.status == 500 and 'UNAVAILABLE' in r.json()['error']
    r = sample.compat('capture_profile', service_addr='127.0.0.1:1', is_tpu_name='true')
    assert r.status == 500 and 'TensorFlow' in r.json()['error']
    assert sample.compat('capture_profile', service_addr='127.0.0.1:1', duration='ten').status == 500


def test_counter_names_need_no_run(sample):
    names = sample.compat('data', tag='perf_counters', names_only='1', device_type='v6e').json()
    assert len(names) == 900 and all(set(n) == {'name', 'val'} for n in names)
    r = sample.compat('data', tag='perf_counters', names_only='1')
    assert r.status == 500 and r.text() == 'device_type is required for perf_counters with names_only'
