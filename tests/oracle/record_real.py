#!/usr/bin/env python3
"""Records what XProf 2.24.2 answers about the real captures and the generated TPU profiles.

    XPROF_PYTHON=.../bin/python tests/oracle/record_real.py --full DIR        ask XProf; keep its whole answers in DIR
    tests/oracle/record_real.py --full DIR --pack                            DIR -> tests/golden/real, small enough to keep

The first needs an interpreter with xprof==2.24.2 and zstandard (it may be the one that runs this), the material in
SHARED_DIR, and some twenty minutes; the second, which also follows the first, only needs what the first has left.
tests/golden/real/README.md says what is kept of an answer.
"""
import argparse
import collections
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.parse

import golden_real as golden

oracle = golden.oracle
KEPT_HEADERS = ('content-type', 'content-disposition')
SELECTED = ('graph_viewer', 'memory_viewer', 'trace_viewer@')
FULL_MODULES = 2  # of a run with many programs, the largest ones are asked in every way


class Plan(oracle.Plan):
    """What to ask about a run: each tool with the parameters that change what it computes."""

    def run_level(self, run):
        self.add('list', 'run_tools', oracle.PREFIX + '/run_tools', run=run, run_=run)
        self.add('text', 'module_list', oracle.PREFIX + '/module_list', run=run, run_=run)
        self.add('json', 'hosts', oracle.PREFIX + '/hosts', run=run, run_=run, tag='overview_page')
        oracle.reset_cache(self.logdir)
        self.ask('/run_tools', run=run)
        hosts = [h['hostname'] for h in self.ask('/hosts', run=run, tag='trace_viewer@') or []]
        modules = [m for m in (self.ask('/module_list', run=run) or '').split(',') if m]
        many = [oracle.ALL_HOSTS] if len(hosts) > 1 else []
        for tool in oracle.TOOLS:
            if tool not in SELECTED:
                for host in hosts[:2] + many:
                    self.data(tool, run, host=host)
        for host in hosts[:1] + many:
            for value in ('category', 'provenance', 'program'):
                self.data('op_profile', run, host=host, group_by=value)
            for tool in oracle.CSV_TOOLS:
                self.add('csv', 'data_csv', oracle.PREFIX + '/data_csv', run=run, run_=run, tag=tool, host=host, tqx='out:csv;')
        self.data('megascale_stats', run, mode='status', host=hosts[0], perfetto='true')
        size = lambda m: os.path.getsize(os.path.join(self.logdir, 'plugins', 'profile', run, m + '.hlo_proto.pb'))
        ranked = sorted(modules, key=lambda m: (-size(m), m))
        for module in modules:
            self.module(run, hosts[0], module, module in ranked[:FULL_MODULES])
        self.trace(run, hosts)

    def module(self, run, host, module, everything):
        common = {'host': host, 'module_name': module}
        self.data('memory_viewer', run, **common)
        self.data('memory_viewer', run, memory_space='1', **common)
        self.data('memory_viewer', run, mode='dot', view_memory_allocation_timeline='true', **common)
        self.data('graph_viewer', run, type='short_txt', **common)
        self.data('graph_viewer', run, type='long_txt', show_metadata='true', **common)
        if everything:
            self.data('memory_viewer', run, memory_space='5', **common)
            self.data('graph_viewer', run, type='long_txt', **common)
            self.data('graph_viewer', run, type='short_txt', show_metadata='true', **common)
            self.data('graph_viewer', run, mode='message', type='pb', **common)
            self.data('graph_viewer', run, mode='pbtxt', type='pbtxt', **common)
        for node in self.some_nodes(run, common, everything):
            self.data('graph_viewer', run, mode='dot', type='graph', format='html', node_name=node, graph_width='2', **common)
            if not everything:
                continue
            self.data('graph_viewer', run, mode='dot', type='graph', format='dot', node_name=node, graph_width='3',
                      show_metadata='true', merge_fusion='true', **common)
            self.data('graph_viewer', run, mode='json', type='adj_nodes', node_name=node, **common)
            self.data('graph_viewer', run, type='custom_call', node_name=node, **common)

    def some_nodes(self, run, common, everything):
        """The root, and one instruction of each opcode that the program has (of some, if it is one of many)."""
        text = self.ask('/data', run=run, tag='graph_viewer', type='short_txt', **common) or ''
        root, _, computation = self.nodes(run, common)
        first = {}
        for name, opcode in re.findall(r'^\s+(?:ROOT )?%?([\w.-]+) = .*?[\])}] ([a-z][\w-]*)\(', text, re.M):
            first.setdefault(opcode, name)
        others = [first[k] for k in sorted(first) if k not in ('parameter', 'constant', 'get-tuple-element', 'bitcast')]
        out = [root, computation] + (others if everything else others[:2])
        return [n for i, n in enumerate(out) if n and n not in out[:i]]

    def trace(self, run, hosts):
        host = hosts[0]
        base = self.ask('/data', run=run, tag='trace_viewer@', host=host)
        low, high = (float(v) for v in base['fullTimespan'])
        at = lambda share: '%.6f' % (low + share * (high - low))
        one = {'host': host}
        for query in [one] + ([{'hosts': ','.join(hosts)}] if len(hosts) > 1 else []):
            for resolution in ('0', '800', '8000'):
                self.data('trace_viewer@', run, 'whole', resolution=resolution, **query)
            for begin, end in ((0.25, 0.5), (0.4, 0.402), (0.9, 1.5)):
                self.data('trace_viewer@', run, 'window', start_time_ms=at(begin), end_time_ms=at(end), resolution='800', **query)
            self.data('trace_viewer@', run, 'window', mode='trace_pb', format='pb', resolution='800', start_time_ms=at(0.25),
                      end_time_ms=at(0.5), **query)
        self.data('trace_viewer@', run, 'whole', full_dma='true', resolution='8000', **one)
        events = [e for e in base['traceEvents'] if e.get('ph') == 'X']
        names = collections.Counter(e['name'] for e in events)
        for name in self.search_terms(names):
            self.data('trace_viewer@', run, 'search', search_prefix=name, resolution='0', **one)
        for e in self.sample_events(events)[:4]:
            ts, dur = golden.Decimal(str(e['ts'])), golden.Decimal(str(e['dur']))
            self.data('trace_viewer@', run, 'event detail', event_name=e['name'], start_time_ms=str(ts / 1000),
                      duration_ms=str(dur / 1000), unique_id=str(e['args'].get('uid', 0)), **one)


def prepare(server, request, before):
    """XProf's caches are removed before each request whose answer may depend on earlier ones (oracle.py says why). What
    the tools of modules and of the timeline keep is the same for each request of a run."""
    same = request['tool'] in SELECTED and before and (before['run'], before['tool']) == (request['run'], request['tool'])
    if not same:
        oracle.prepare(server.base, server.logdir, request)


def record(python, full, only):
    with tempfile.TemporaryDirectory(prefix='golden-') as scratch:
        golden.unpack(scratch)
        with oracle.XprofServer(scratch, python) as server:
            os.makedirs(full, exist_ok=True)
            for run in sorted(os.listdir(os.path.join(scratch, 'plugins', 'profile'))):
                if only and run not in only:
                    continue
                plan = Plan(server.base, server.logdir, print)
                plan.run_level(run)
                ask(server, plan.requests, os.path.join(full, run + '.json'))
                print('%s: %d answers' % (run, len(plan.requests)), flush=True)


def ask(server, requests, path):
    before = None
    with open(path + '.new', 'w', encoding='utf8') as f:
        for request in requests:
            prepare(server, request, before)
            before = request
            answer = oracle.fetch(server.base, request['method'], oracle.path_of(request, server.logdir))
            row = dict(request, status=answer.status, headers={k: answer.headers[k] for k in KEPT_HEADERS if k in answer.headers})
            stored = oracle.encode(request['mode'], answer)
            f.write(json.dumps(row, sort_keys=True) + '\n' + oracle.canonical_json(stored).replace('\n', '') + '\n')
    os.replace(path + '.new', path)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--full', required=True, metavar='DIR', help='where the whole answers lie')
    ap.add_argument('--pack', action='store_true', help='only make tests/golden/real from them')
    ap.add_argument('--run', action='append', help='ask about this run only')
    args = ap.parse_args()
    if not args.pack:
        record(os.environ.get('XPROF_PYTHON') or sys.executable, args.full, args.run)
    golden.pack(args.full)


if __name__ == '__main__':
    main()
