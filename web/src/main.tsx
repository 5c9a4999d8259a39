import { useComputed } from "@preact/signals";
import { render } from "preact";
import { follow, here } from "./model/location";
import "./model/theme";
import { views } from "./views/registry";
import { Bar } from "./widgets/shell";

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

function App() {
  const page = useComputed(() => here.value.page);
  const View = views.find((v) => v.page === page.value)?.component ?? NotFound;
  return <View />;
}

document.addEventListener("click", follow);
render(<App />, document.getElementById("app")!);
