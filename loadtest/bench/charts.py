"""Figures over time as SVG, and the page of a load test."""
import html
import math

COLOURS = ['#1f6feb', '#d1572a', '#2e8b57', '#8e44ad', '#b8860b', '#3aa6a6', '#777777']
W, H, LEFT, RIGHT, TOP, BOTTOM = 560, 220, 64, 14, 52, 26

STYLE = '''body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:74em;padding:0 1em;color:#1c2128;background:#fff}
h1{font-size:22px}h2{font-size:17px;margin:2.2em 0 .4em;border-top:1px solid #d8dee4;padding-top:1.2em}
p.sub{color:#57606a;margin:.2em 0 1em}pre{background:#f6f8fa;padding:1em;overflow:auto;font-size:12px;border-radius:6px}
table{border-collapse:collapse;margin:.6em 0}td,th{border-bottom:1px solid #d8dee4;padding:.3em .8em;text-align:right;font-variant-numeric:tabular-nums}
td:first-child,th:first-child,table.goals td,table.goals th{text-align:left}th{font-weight:600;color:#57606a}
.no{color:#b42318;font-weight:600}.yes{color:#1a7f37}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(32em,1fr));gap:.8em 1.2em}
svg{width:100%;height:auto;display:block}.t{font-size:13px;font-weight:600;fill:#1c2128}.a{font-size:10.5px;fill:#57606a}
.y{text-anchor:end}.x{text-anchor:middle}.g{stroke:#e6e9ed}.m{stroke:#8c959f;stroke-dasharray:3}.k{font-size:9.5px;fill:#57606a}
.l{font-size:11px}summary{cursor:pointer;color:#57606a}'''


def round_up(v):
    """The next of 1, 2, 5, 10, 20 ..."""
    unit = 10 ** math.floor(math.log10(max(v, 1e-9)))
    return next(m * unit for m in (1, 2, 5, 10) if m * unit >= v * 0.999999)


def y_ticks(values, log, least):
    top = max(values + [least])
    if not log:
        step = round_up(top / 4)
        return [step * i for i in range(math.ceil(top / step - 1e-9) + 1)]
    low = min([v for v in values if v > 0] + [least])
    return [10.0 ** k for k in range(math.floor(math.log10(max(low, 0.01))), max(math.ceil(math.log10(top)), 0) + 1)]


def legend(series):
    out, x = [], LEFT
    for i, (name, _) in enumerate(series):
        out.append('<rect x="%d" y="26" width="14" height="3" fill="%s"/><text x="%d" y="31" class="l a">%s</text>' %
                   (x, COLOURS[i % len(COLOURS)], x + 18, html.escape(name)))
        x += 32 + 6.4 * len(name)
    return out


def mark(x, at, what):
    """A line where something happened; names take turns in two rows, so that neighbours can be read."""
    return '<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="m"/><text x="%.1f" y="%d" class="k">%s</text>' % (
        x, x, TOP - 10, H - BOTTOM, x + 2, TOP - 4 + 10 * (at % 2), html.escape(what))


def chart(title, series, marks, seconds, log=False, unit='', least=1.0):
    """series: [(name, [(x, y)])]; x in seconds."""
    ticks = y_ticks([y for _, v in series for _, y in v], log, least)
    low, top = ticks[0], ticks[-1]

    def px(x):
        return LEFT + (W - LEFT - RIGHT) * min(x, seconds) / seconds

    def py(y):
        share = math.log(max(y, low) / low) / math.log(top / low) if log else y / top
        return H - BOTTOM - (H - BOTTOM - TOP) * share

    out = ['<svg viewBox="0 0 %d %d" role="img" aria-label="%s">' % (W, H, html.escape(title)),
           '<text x="%d" y="14" class="t">%s</text>' % (LEFT, html.escape(title))] + legend(series)
    for t in ticks:
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" class="g"/><text x="%d" y="%.1f" class="a y">%s</text>' %
                   (LEFT, W - RIGHT, py(t), py(t), LEFT - 6, py(t) + 4, '%g%s' % (round(t, 4), unit)))
    step = round_up(seconds / 8)
    for i in range(int(seconds / step) + 1):
        out.append('<text x="%.1f" y="%d" class="a x">%g s</text>' % (px(i * step), H - 8, i * step))
    out += [mark(px(x), i, what) for i, (x, what) in enumerate(marks)]
    for i, (_, v) in enumerate(series):
        points = ' '.join('%.1f,%.1f' % (px(x), py(y)) for x, y in v)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round"/>' %
                   (points, COLOURS[i % len(COLOURS)]))
    return ''.join(out) + '</svg>'


def table(head, rows, kind=''):
    out = ['<table class="%s"><tr>%s</tr>' % (kind, ''.join('<th>%s</th>' % html.escape(h) for h in head))]
    for row in rows:
        out.append('<tr>%s</tr>' % ''.join('<td class="%s">%s</td>' % (c if c in ('yes', 'no') else '', html.escape(str(c)))
                                           for c in row))
    return ''.join(out) + '</table>'


def actions(run):
    rows = [[name, m['n'], m['errors']] + ['%.1f' % m[k] for k in ('p50', 'p95', 'p99', 'p999', 'max')]
            for name, m in run.result['ms'].items() if m['n'] or m['errors']]
    return table(['action', 'answered', 'errors', 'p50 ms', 'p95 ms', 'p99 ms', 'p99.9 ms', 'max ms'], rows)


def of_run(run):
    """Charts of one run: by the second in which a request was to start, in the middle of it."""
    s, n = run.result['seconds'], run.result['run_s']

    def of(k):
        return [(i + 0.5, x[k]) for i, x in enumerate(s)]

    return [chart('Latency from the intended start', [('p50', of(2)), ('p95', of(3)), ('p99', of(4)), ('p99.9', of(5))],
                  run.marks, n, log=True, unit=' ms'),
            chart('Requests and errors a second', [('requests', of(0)), ('errors', of(1))], run.marks, n),
            chart('Resident memory', list(run.rss.values()), run.marks, n, unit=' MB'),
            chart('Answered from memory', [('profiles', run.hits), ('answers kept', run.known)], run.marks, n, unit=' %',
                  least=100.0)]


def page(title, runs, goals):
    """goals: rows of what, goal, measured, 'yes' or 'no'."""
    out = ['<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
           '<title>Load test</title><style>%s</style><h1>Load test</h1><p class="sub">%s</p>' % (STYLE, html.escape(title))]
    if goals:
        out.append(table(['figure', 'goal', 'measured', 'reached'], goals, 'goals'))
    for r in runs:
        out.append('<h2>%s</h2><p class="sub">%s</p>%s<div class="grid">%s</div><details><summary>all of it</summary><pre>%s</pre>'
                   '</details>' % (html.escape(r.title), html.escape(r.what()), actions(r), ''.join(of_run(r)), html.escape(r.text())))
    return '\n'.join(out) + '</html>\n'
