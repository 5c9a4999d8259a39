import { useComputed, useSignal } from "@preact/signals";
import { render, type ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { asProblem, type Problem } from "./api/client";
import { follow, here } from "./model/location";
import "./model/textsize";
import "./model/theme";
import { followCaptures } from "./shell/captures";
import { Dialogs, listenGlobalKeys } from "./shell/dialogs";
import { Rail } from "./shell/rail";
import { CaptureVoice } from "./shell/recording";
import { Uploads } from "./shell/upload";
import { views, type View } from "./views/registry";
import { ProblemPanel } from "./widgets/problem";
import { Bar, Loading } from "./widgets/shell";

function NotFound() {
  return (
    <>
      <Bar crumbs={<a href={here.value.root}>Runs</a>} />
      <main class="page">
        <div class="empty">
          <h2>No such page</h2>
          <p><code>{here.value.page}</code> is none of ours. <a href={here.value.root}>All runs</a></p>
        </div>
      </main>
    </>
  );
}

const loaded = new Map<View["load"], ComponentType>(); // tools share one script

/** A page whose script is not there yet: asked for once, with its own loading and error states. */
function Lazy({ view }: { view: View }) {
  const ready = useSignal(loaded.get(view.load));
  const problem = useSignal<Problem | null>(null);
  useEffect(() => {
    let live = true;
    problem.value = null;
    (view.load as () => Promise<ComponentType>)().then(
      (component) => {
        loaded.set(view.load, component);
        if (live) ready.value = component;
      },
      (e: unknown) => live && (problem.value = asProblem(e)),
    );
    return () => void (live = false);
  }, [view]);
  const Component = ready.value;
  if (Component) return <Component />;
  return (
    <>
      <Bar crumbs={<a href={here.value.root}>Runs</a>} />
      <main class="page">
        {problem.value
          ? <ProblemPanel problem={problem.value} retry={() => window.location.reload()} />
          : <Loading what="Loading the page…" />}
      </main>
    </>
  );
}

function App() {
  const page = useComputed(() => here.value.page);
  const view = views.find((v) => v.page === page.value);
  const Now = view && !view.lazy ? (view.load as ComponentType) : null;
  const root = useComputed(() => here.value.root);
  useEffect(listenGlobalKeys, []);
  useEffect(() => followCaptures(root.value), [root.value]);
  return (
    <>
      <Rail />
      <div class="view">
        {Now ? <Now /> : view ? <Lazy key={view.page} view={view} /> : <NotFound />}
      </div>
      <Uploads />
      <CaptureVoice />
      <Dialogs />
    </>
  );
}

document.addEventListener("click", follow);
render(<App />, document.getElementById("app")!);
