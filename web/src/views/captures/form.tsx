// What is to be captured: targets, how long, how much of it, and what that will be.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Captures, Refused, Target } from "../../api/captures";
import { announce, DELAY, DURATION, estimate, faultsOf, formOf, HOST_LEVELS, isSound, KNOWN_OPTIONS, matching, milliseconds, presetOf, PRESETS, preselected, seconds, wantedOf, withPreset, type Form } from "../../model/captures";
import { bytes, count, plural } from "../../model/format";
import { runTitle } from "../../model/runname";
import { record, start } from "../../shell/captures";
import { RefusedList, useAct } from "../../shell/recording";
import { Icon } from "../../widgets/icon";

const MANY = 8; // targets: from here on they are filtered
const LISTED = 200;

/** Of a group that is wrong as a whole: it can have the focus, and says why. */
const faultOf = (fault: string | undefined, id: string) => (fault ? { tabIndex: -1, "data-fault": "", "aria-describedby": id } : {});

/** A field with its name above and what is wrong with it below. */
function Field({ label, fault, children, about }: { label: string; fault?: string | undefined; about?: string; children: (p: { id: string; "aria-invalid": boolean; "aria-describedby": string | undefined }) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="form-field">
      <label for={id}>{label}</label>
      {children({ id, "aria-invalid": Boolean(fault), "aria-describedby": fault ? `${id}-fault` : about ? `${id}-about` : undefined })}
      {fault ? <p class="fault" id={`${id}-fault`}>{fault}</p> : about && <p class="ago" id={`${id}-about`}>{about}</p>}
    </div>
  );
}

function Targets({ data, chosen, choose, fault, run, hosts }: {
  data: Captures; chosen: ReadonlySet<string>; choose: (to: Set<string>) => void; fault: string | undefined; run: string; hosts: readonly string[];
}) {
  const q = useSignal("");
  const all = data.targets;
  const found = matching(all, q.value);
  const recording = new Set(data.continuous.map((c) => c.target));
  const mine = all.some((t) => hosts.includes(t.name));
  const flip = (t: Target): void => {
    const next = new Set(chosen);
    next.has(t.name) ? next.delete(t.name) : next.add(t.name);
    choose(next);
  };
  return (
    <fieldset class="targets" {...faultOf(fault, "targets-fault")}>
      <legend>Targets</legend>
      <p class="row wrap targets-head">
        <output class="ago">{count(chosen.size)} of {plural(all.length, "target")}</output>
        {all.length > MANY && (
          <search class="search">
            <Icon name="search" />
            <input type="text" spellcheck={false} aria-label="Filter targets" placeholder="name or address" value={q.value} onInput={(e) => (q.value = e.currentTarget.value)} />
          </search>
        )}
        <button type="button" class="button" aria-disabled={found.every((t) => chosen.has(t.name))} onClick={() => choose(new Set([...chosen, ...found.map((t) => t.name)]))}>{q.value ? "Add those found" : "All"}</button>
        <button type="button" class="button" aria-disabled={found.every((t) => !chosen.has(t.name))} onClick={() => { const off = new Set(found.map((t) => t.name)); choose(new Set([...chosen].filter((n) => !off.has(n)))); }}>{q.value ? "Take those out" : "None"}</button>
      </p>
      {run && <p class="ago">{mine ? <>Chosen are the hosts of <b>{runTitle(run)}</b> that are targets.</> : <>No target is called as a host of <b>{runTitle(run)}</b>: all are chosen.</>}</p>}
      <ul class="target-list" aria-label="Targets">
        {found.slice(0, LISTED).map((t) => (
          <li key={t.name}>
            <label>
              <input type="checkbox" checked={chosen.has(t.name)} onChange={() => flip(t)} />
              <b>{t.name}</b> <span class="ago">{t.address}</span>
              {recording.has(t.name) ? <span class="pill">records continuously</span> : t.busy && <span class="pill">busy</span>}
              {t.bytes_per_s !== null && <span class="ago target-rate" title="Of its last capture">{bytes(Math.round(t.bytes_per_s))}/s</span>}
            </label>
          </li>
        ))}
        {found.length === 0 && <li class="none">None is called so.</li>}
      </ul>
      {found.length > LISTED && <p class="ago">{plural(found.length - LISTED, "more target")}: filter to see them.</p>}
      {fault && <p class="fault" id="targets-fault" role="alert">{fault}</p>}
    </fieldset>
  );
}

function OptionRows({ rows, faults, change }: { rows: Form["options"]; faults: readonly string[]; change: (to: Form["options"]) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const added = useSignal(false);
  useEffect(() => {
    if (added.value) box.current?.querySelector<HTMLInputElement>(".option-row:last-of-type input")?.focus();
    added.value = false;
  }, [rows.length]);
  const set = (i: number, row: readonly [string, string]): void => {
    // key=value may be pasted whole.
    const eq = row[0].indexOf("=");
    const split: readonly [string, string] = eq > 0 ? [row[0].slice(0, eq).trim(), row[0].slice(eq + 1).trim() || row[1]] : row;
    change(rows.map((r, k) => (k === i ? split : r)));
    if (eq > 0) box.current?.querySelectorAll(".option-row")[i]?.querySelectorAll("input")[1]?.focus();
  };
  return (
    <div class="options" ref={box} role="group" aria-label="Extra options">
      <datalist id="capture-options">{KNOWN_OPTIONS.map((k) => <option key={k} value={k} />)}</datalist>
      {rows.map(([key, value], i) => (
        <div key={i} class="option-row">
          <input class="field" list="capture-options" spellcheck={false} autocomplete="off" aria-label={`Name of option ${i + 1}`} placeholder="name" value={key} aria-invalid={Boolean(faults[i])} aria-describedby={faults[i] ? `option-fault-${i}` : undefined} onInput={(e) => set(i, [e.currentTarget.value, value])} />
          <span aria-hidden="true">=</span>
          <input class="field" spellcheck={false} autocomplete="off" aria-label={`Value of option ${i + 1}`} placeholder="value" value={value} aria-invalid={Boolean(faults[i])} onInput={(e) => set(i, [key, e.currentTarget.value])} />
          <button type="button" class="tool" aria-label={`Remove option ${key || i + 1}`} title="Remove" onClick={() => change(rows.filter((_, k) => k !== i))}><Icon name="close" /></button>
          {faults[i] && <p class="fault" id={`option-fault-${i}`}>{faults[i]}</p>}
        </div>
      ))}
      <button type="button" class="link" onClick={() => { added.value = true; change([...rows, ["", ""]]); }}>Add an option</button>
    </div>
  );
}

function Level({ label, value, names, set }: { label: string; value: number; names: readonly string[]; set: (v: number) => void }) {
  return (
    <label class="form-field">{label}
      <select value={value} onChange={(e) => set(Number(e.currentTarget.value))}>{names.map((n, i) => <option key={n} value={i}>{n}</option>)}</select>
    </label>
  );
}

const ON = ["Off", "On"];

type Mode = "once" | "always";

export function CaptureForm({ data, run, hosts, started }: { data: Captures; run: string; hosts: readonly string[]; started: (id: string) => void }) {
  const form = useSignal<Form>(formOf(PRESETS[0]!));
  const picked = useSignal<ReadonlySet<string> | null>(null); // null: as they were preselected
  const mode = useSignal<Mode>("once");
  const shown = useSignal(false); // what is wrong with fields that nobody has touched
  const refused = useSignal<readonly Refused[]>([]);
  const { act, busy, said } = useAct();
  const box = useRef<HTMLFormElement>(null);
  useEffect(() => void (picked.value = null), [run]);

  const f = form.value;
  const set = (change: Partial<Form>): void => void (form.value = { ...f, ...change });
  const chosenSet = picked.value ?? preselected(data.targets, hosts);
  const chosen = data.targets.filter((t) => chosenSet.has(t.name));
  const names = chosen.map((t) => t.name);
  const once = mode.value === "once";
  const faults = faultsOf(f, names);
  const sound = once ? isSound(faults) : names.length > 0;
  const size = estimate(chosen, milliseconds(f.duration), data.mode);
  const preset = presetOf(f);
  const taken = chosen.filter((t) => t.busy || data.continuous.some((c) => c.target === t.name));

  const submit = (e: Event): void => {
    e.preventDefault();
    shown.value = true;
    refused.value = [];
    if (!sound) return void setTimeout(() => box.current?.querySelector<HTMLElement>("[aria-invalid=true], [data-fault]")?.focus());
    void act(async () => {
      if (once) started((await start(wantedOf(f, names))).id);
      else refused.value = await record(names, true, f.levels.device);
    });
  };
  return (
    <form ref={box} class="capture-form panel" onSubmit={submit} noValidate aria-label="New capture">
      <div class="switch" role="group" aria-label="How long">
        <button type="button" aria-pressed={once} onClick={() => (mode.value = "once")}>For a while</button>
        <button type="button" aria-pressed={!once} onClick={() => (mode.value = "always")}>Continuously</button>
      </div>
      <Targets data={data} chosen={chosenSet} choose={(to) => (picked.value = to)} fault={faults.targets} run={run} hosts={hosts} />
      {once ? (
        <>
          <fieldset class="presets">
            <legend>Preset</legend>
            {PRESETS.map((p) => (
              <label key={p.id} class={preset === p.id ? "chosen" : ""}>
                <input type="radio" name="preset" checked={preset === p.id} onChange={() => (form.value = withPreset(f, p))} />
                <span><b>{p.label}</b><br /><span class="ago">{p.about}</span></span>
              </label>
            ))}
          </fieldset>
          <div class="form-row">
            <Field label="Duration, seconds" fault={faults.duration}>
              {(p) => <input {...p} class="field short" inputMode="decimal" value={f.duration} onInput={(e) => set({ duration: e.currentTarget.value })} placeholder={seconds(DURATION.least)} />}
            </Field>
            <Field label="Begin in, seconds" fault={faults.delay}>
              {(p) => <input {...p} class="field short" inputMode="decimal" value={f.delay} onInput={(e) => set({ delay: e.currentTarget.value })} placeholder={seconds(DELAY.least)} />}
            </Field>
            <div class="levels" role="group" aria-label="Levels" {...faultOf(faults.levels, "levels-fault")}>
              <Level label="Hosts" value={f.levels.host} names={HOST_LEVELS} set={(host) => set({ levels: { ...f.levels, host } })} />
              <Level label="Devices" value={f.levels.device} names={ON} set={(device) => set({ levels: { ...f.levels, device } })} />
              <Level label="Python" value={f.levels.python} names={ON} set={(python) => set({ levels: { ...f.levels, python } })} />
            </div>
            <Field label="Name of the run" fault={faults.run}>
              {(p) => <input {...p} class="field" spellcheck={false} autocomplete="off" value={f.run} onInput={(e) => set({ run: e.currentTarget.value.trim() })} placeholder="the time" />}
            </Field>
          </div>
          {faults.levels && <p class="fault" id="levels-fault" role="alert">{faults.levels}</p>}
          <fieldset class="options-box">
            <legend>Extra options <span class="ago">of the profiler, as name = value</span></legend>
            <OptionRows rows={f.options} faults={shown.value ? faults.options : faults.options.map((x, i) => (f.options[i]![0] && f.options[i]![1] ? x : /digits/.test(x) ? x : ""))} change={(options) => set({ options })} />
          </fieldset>
          {size.text && <p class={`estimate tone ${size.tone}`}>{size.tone && <Icon name="warn" />} <span>{size.text}</span></p>}
        </>
      ) : (
        <div class="form-row">
          <p class="always">Each target keeps the latest of what its devices do in a buffer of its own, until it is stopped; a snapshot takes what the buffers hold. Hosts are not recorded: their events would grow without end.</p>
          <Level label="Devices" value={f.levels.device} names={ON} set={(device) => set({ levels: { ...f.levels, device } })} />
        </div>
      )}
      {taken.length > 0 && (
        <p class="tone warning"><Icon name="warn" /> <span>{taken.length === 1 ? `${taken[0]!.name} is` : `${plural(taken.length, "target")} are`} being recorded: a program has one profiler. <button type="button" class="link" onClick={() => (picked.value = new Set(names.filter((n) => !taken.some((t) => t.name === n))))}>Leave {taken.length === 1 ? "it" : "them"} out</button></span></p>
      )}
      <p class="row wrap">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? <span class="spinner" /> : <Icon name="camera" />} {once ? announce(names, f) : `Record ${names.length === 1 ? names[0]! : plural(names.length, "target")} until stopped`}
        </button>
        <span class="ago">{data.mode === "pull" ? "Profiles come here" : "Targets write their profiles"}, into <code>{data.location}</code></span>
      </p>
      <RefusedList list={refused.value} what="does not record" />
      {said}
    </form>
  );
}
