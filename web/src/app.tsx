// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { apiUrl, SESSION_ENDED } from "./api/client";
import type { Overview, Session } from "./api/types";
import { useKeys } from "./state/keys";
import { useTheme, type Theme } from "./state/theme";
import { useHost, type ChooseHost } from "./state/use-host";
import { useHostData, type HostData } from "./state/use-host-data";
import { useResource } from "./state/use-resource";
import { GpuLines } from "./views/answer";
import { Header, nameOf } from "./views/header";
import { Help } from "./views/help";
import { HostsPage } from "./views/hosts";
import { PageBody } from "./views/page-body";
import { PageNav, titleOf } from "./views/page-nav";
import { SignedIn, SignIn } from "./views/sign-in";
import { slowLines } from "./views/slow-steps";
import { Failed, Loading, Notices, Problems, UnknownHost } from "./views/states";
import { StripsPanel } from "./views/strips-panel";
import { UsagePage } from "./views/usage";

const SESSION = { url: apiUrl("session"), question: "session" };

// Another host has other processes, devices and times: its page starts anew. So it does for whoever signs in.
export function App() {
  const [host, choose] = useHost();
  const [changes, setChanges] = useState(0);
  const [ended, setEnded] = useState(false);
  const session = useResource<Session, Session>(SESSION, changes, (json) => json);
  const theme = useTheme();
  const again = () => {
    setEnded(false);
    setChanges((count) => count + 1);
  };
  // Any request may find that out: not every page polls.
  useEffect(() => {
    const end = () => {
      again();
      setEnded(true);
    };
    addEventListener(SESSION_ENDED, end);
    return () => removeEventListener(SESSION_ENDED, end);
  }, []);
  if (!session.data) {
    return session.error ? <Failed error={session.error} onRetry={again} /> : <Loading what="the session" />;
  }
  if (session.data.needs_sign_in) return <SignIn ended={ended} onDone={again} />;
  const account = session.data.name !== "" && <SignedIn name={session.data.name} onSignedOut={again} />;
  return <HostPages key={host ?? ""} host={host} onHost={choose} theme={theme} account={account} />;
}

interface HostPagesProps {
  host: string | null;
  onHost: ChooseHost;
  theme: Theme;
  // Who is signed in, where the server asks for it.
  account: ComponentChildren;
}

// Data flows one way: the address defines the selection, resources fetch it, views show it.
function HostPages({ host, onHost, theme, account }: HostPagesProps) {
  const [helping, setHelping] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const body = useRef<HTMLSpanElement>(null);
  const data = useHostData(host);
  const { overview, hosts, view, nav, retry } = data;
  const onHelp = () => setHelping(true);
  useKeys({ active: !data.choosing, view, nav, search, onHelp });

  const seen = overview.data;
  const title = data.choosing ? "Hosts" : titleOf(view);
  const name = seen && nameOf(seen);
  useEffect(() => {
    document.title = [title, name, "gpusonde"].filter(Boolean).join(" · ");
  }, [title, name]);
  if (!seen && host !== null && overview.error?.status === 404) return <UnknownHost host={host} onAll={() => onHost(null)} />;
  if (!seen && overview.error) return <Failed error={overview.error} onRetry={retry} />;
  if (!seen) return <Loading what="the overview" />;
  const lost = overview.error !== null;
  const themes = { theme: theme.choice, onTheme: theme.choose };
  if (data.choosing && hosts.data && hosts.data.hosts.length > 0) {
    return (
      <HostsPage {...hosts.data} problems={data.problems} lost={lost} {...themes} onHost={onHost} account={account}>
        <UsageOfAll data={data} />
      </HostsPage>
    );
  }
  return (
    <div class={`app ${data.busy ? "busy" : ""}`}>
      <button type="button" class="plain skip" onClick={() => body.current?.focus()}>
        Skip to the page
      </button>
      <Header
        overview={seen}
        hosts={hosts.data?.hosts ?? []}
        host={host}
        onHost={onHost}
        lost={lost}
        ageS={data.ageS}
        processes={data.processes.data?.processes ?? null}
        devices={data.devices.data?.devices ?? []}
        available={data.available}
        window={data.window}
        view={view}
        nav={nav}
        {...themes}
        onHelp={onHelp}
        account={account}
      />
      <Notices notices={seen.notices} />
      <Problems problems={data.problems} />
      {view.page === "profile" && <Answer data={data} overview={seen} />}
      <StripsPanel data={data} isDark={theme.isDark} />
      <PageNav data={data} />
      {data.busy && <div class="progress" role="progressbar" aria-label="Reading samples" />}
      <span class="unseen" ref={body} tabIndex={-1}>
        {title}
      </span>
      <PageBody data={data} overview={seen} isDark={theme.isDark} search={search} />
      {helping && <Help onClose={() => setHelping(false)} />}
    </div>
  );
}

// What a reader wants to know first: what made steps slow, and how the GPUs spent their time.
function Answer({ data, overview }: { data: HostData; overview: Overview }) {
  const { summary, incidents, view, opensOn, nav } = data;
  const seen = { ...overview, lost: data.overview.error !== null };
  const gpu = summary.data?.gpu;
  const reading = summary.data === null && summary.loading;
  const slow = incidents.data && slowLines({ found: incidents.data, seen, view, opensOn, nav });
  if (!gpu && !slow && !reading) return null;
  return (
    <section class="answer" aria-label="What slowed steps, and how GPUs spent their time">
      {slow}
      {gpu && <GpuLines gpu={gpu} view={view} opensOn={opensOn} nav={nav} sampled={overview.samples > 0} />}
      {reading && <p class="reading">Reading GPU time…</p>}
    </section>
  );
}

function UsageOfAll({ data: { usage, usageCsv, view, nav, retry } }: { data: HostData }) {
  if (usage.data) return <UsagePage usage={usage.data} csv={usageCsv} view={view} nav={nav} />;
  return usage.error && <Failed error={usage.error} onRetry={retry} />;
}
