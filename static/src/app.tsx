import { lazy, Suspense } from "preact/compat";
import { useCallback, useEffect, useState } from "preact/hooks";
import { Link, Redirect, Route, Router, Switch, useLocation } from "wouter-preact";
import { api, ask } from "./api/client";
import { connection } from "./api/connection";
import { session } from "./api/session";
import { Boundary } from "./components/boundary";
import { Toasts } from "./components/toasts";
import { Empty, Failed, Skeleton } from "./components/states";
import { Banner } from "./shell/banner";
import { LoginDialog, LoginPage } from "./shell/login";
import { PipelineFrame } from "./shell/pipeline";
import { routes } from "./browser/routes";
import { Shell } from "./shell/shell";
import { guarded } from "./browser/unsaved";
import { RunBar } from "./views/jobs/run-bar";

const Pipelines = lazy(() => import("./views/pipelines"));
const FromCsv = lazy(() => import("./views/new"));
const Lake = lazy(() => import("./views/lake"));
const Settings = lazy(() => import("./views/settings"));
const Overview = lazy(() => import("./views/overview"));
const Data = lazy(() => import("./views/data"));
const Query = lazy(() => import("./views/query"));
const Dashboards = lazy(() => import("./views/dashboards"));
const Jobs = lazy(() => import("./views/jobs"));
const AllJobs = lazy(() => import("./views/jobs/all"));
const Config = lazy(() => import("./views/config"));

/** Routes of one pipeline, relative to `/p/:slug`. */
function PipelineRoutes({ slug }: { slug: string }) {
  // Switching tabs resets a failed view.
  const tab = useLocation()[0].split("/")[1];
  return (
    <PipelineFrame slug={slug} foot={<RunBar slug={slug} />}>
      <Boundary key={tab}>
        <Suspense fallback={<Skeleton lines={6} />}>
          <Switch>
            <Route path="/">
              <Overview slug={slug} />
            </Route>
            <Route path="/data/:table?">
              <Data slug={slug} />
            </Route>
            <Route path="/query">
              <Query slug={slug} />
            </Route>
            <Route path="/dashboards/*?">
              <Dashboards slug={slug} />
            </Route>
            <Route path="/jobs/:id?">
              <Jobs slug={slug} />
            </Route>
            <Route path="/config">
              <Config slug={slug} />
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </Suspense>
      </Boundary>
    </PipelineFrame>
  );
}

function NotFound() {
  return (
    <Empty
      title="Page not found"
      actions={
        <Link class="button" href={`~${routes.home()}`}>
          All pipelines
        </Link>
      }
    >
      <code>{location.pathname}</code>
    </Empty>
  );
}

function Views() {
  const place = useLocation()[0].split("/").slice(1, 3).join("/");
  return (
    <Shell>
      <Boundary key={place}>
        <Suspense fallback={<Skeleton lines={6} />}>
          <Switch>
            <Route path="/">
              <Pipelines />
            </Route>
            <Route path="/login">
              <Redirect to="/" />
            </Route>
            <Route path="/new">
              <FromCsv />
            </Route>
            <Route path="/lake">
              <Lake />
            </Route>
            <Route path="/jobs">
              <AllJobs />
            </Route>
            <Route path="/settings">
              <Settings />
            </Route>
            <Route path="/p/:slug" nest>
              {({ slug }) => <PipelineRoutes key={slug} slug={slug} />}
            </Route>
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </Suspense>
      </Boundary>
    </Shell>
  );
}

/** Checks for a session at startup; returns the error if that fails. */
function useSessionAtStart(): { error: unknown; retry: () => void } {
  const [error, setError] = useState<unknown>();
  const look = useCallback(() => {
    setError(undefined);
    ask(api.GET("/session")).then(
      ({ authenticated }) => (authenticated ? session.opened() : session.closed()),
      (thrown: unknown) => setError(thrown),
    );
  }, []);
  useEffect(() => {
    look();
    return connection.onRecovered(() => {
      if (session.state.value === "unknown") look();
    });
  }, [look]);
  return { error, retry: look };
}

export function App() {
  const state = session.state.value;
  const start = useSessionAtStart();
  return (
    <>
      <Banner />
      {state === "unknown" && start.error !== undefined && (
        <main>
          <Failed title="Couldn't load Lakemill" error={start.error} onRetry={start.retry} />
        </main>
      )}
      {state === "out" && <LoginPage />}
      {(state === "in" || state === "lost") && (
        <Router aroundNav={guarded}>
          <Views />
        </Router>
      )}
      {state === "lost" && <LoginDialog />}
      <Toasts />
    </>
  );
}
