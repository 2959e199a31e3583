/** The console's frame: navigation, the panel that the address names, and the sign-in before it. */

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { refresh, signOut, state } from "./account";
import { said } from "./api";
import { panels } from "./panels";
import { Failure, failure } from "./parts/notice";
import { SignIn } from "./parts/sign-in";
import { route } from "./route";

const root = document.getElementById("console")!;

function Console() {
  const current = panels.find((panel) => panel.id === route.value.panel) ?? panels[0]!;
  useEffect(() => {
    document.title = `${current.title} · Cellblock`;
  }, [current]);
  if (state.value === null) return <Failure />;
  const { account, version } = state.value;
  if (!account) return <SignIn />;
  const View = current.view;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the panel
      </a>
      <header>
        <a class="brand" href="#/playground">
          <span class="mark" aria-hidden="true" />
          Cellblock
        </a>
        <nav aria-label="Panels">
          {panels.map((panel) => (
            <a key={panel.id} href={`#/${panel.id}`} aria-current={panel === current ? "page" : undefined}>
              {panel.title}
            </a>
          ))}
        </nav>
        {account.name !== undefined && (
          <div class="account">
            <span title={`Key ${account.owner}`}>{account.name}</span>
            <button type="button" class="quiet" onClick={() => void signOut()}>
              Sign out
            </button>
          </div>
        )}
      </header>
      <main id="main" tabIndex={-1} aria-label={current.title}>
        <Failure />
        <View detail={route.value.detail} />
      </main>
      <footer>
        <span>Cellblock {version}</span>
        <a href={root.dataset.licenses} target="_blank" rel="noopener noreferrer">
          Licenses
        </a>
      </footer>
    </>
  );
}

/** Moves the focus without changing the address, which names the panel. */
function skip(event: Event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

refresh().catch((error) => {
  failure.value = said(error);
});
render(<Console />, root);
