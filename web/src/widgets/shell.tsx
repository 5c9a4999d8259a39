// The bar that every page has.
import type { ComponentChildren } from "preact";
import { here } from "../model/location";
import { choice, cycleTheme } from "../model/theme";
import { drawer } from "../shell/drawer";
import { RecordingChip } from "../shell/recording";
import { ShareButton } from "../shell/share";
import { Tray } from "../shell/tray";
import { UploadChip } from "../shell/upload";
import { Icon, Logo } from "./icon";

export function Bar({ crumbs, children }: { crumbs: ComponentChildren; children?: ComponentChildren }) {
  const icon = { auto: "auto", light: "sun", dark: "moon" } as const;
  return (
    <header class="bar">
      <button
        type="button" class="tool menu-button" aria-label="Menu" aria-expanded={drawer.value} title="Menu"
        onClick={() => (drawer.value = !drawer.peek())}
      >
        <Icon name="menu" />
      </button>
      <a class="brand" href={here.value.root} title="All runs"><Logo /> xprofd</a>
      <nav class="crumbs" aria-label="You are here">{crumbs}</nav>
      <div class="tools">
        {children}
        <RecordingChip />
        <UploadChip />
        <Tray />
        <ShareButton />
        <button
          type="button" class="tool" onClick={cycleTheme}
          title={`Theme: ${choice.value === "auto" ? "as the system" : choice.value} (T)`}
          aria-label={`Theme: ${choice.value}`}
        >
          <Icon name={icon[choice.value]} />
        </button>
      </div>
    </header>
  );
}

export function Loading({ what }: { what: string }) {
  return <p class="loading" role="status"><span class="spinner" /> {what}</p>;
}
