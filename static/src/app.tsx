import { lazy, Suspense } from "preact/compat";
import { useEffect } from "preact/hooks";
import { Redirect, Route, Router, Switch } from "wouter-preact";
import { api, ask } from "./api/client";
import { session } from "./api/session";
import { Toasts } from "./components/toasts";
import { Empty, Skeleton } from "./components/states";
import { Banner } from "./shell/banner";
import { LoginAgain, LoginPage } from "./shell/login";
import { PipelineFrame } from "./shell/pipeline";
import { places } from "./shell/places";
import { Shell } from "./shell/shell";
import { guarded } from "./shell/unsaved";

const Pipelines = lazy(() => import("./views/pipelines"));
const FromCsv = lazy(() => import("./views/new"));
const Lake = lazy(() => import("./views/lake"));
const Settings = lazy(() => import("./views/settings"));
const Overview = lazy(() => import("./views/overview"));
const Data = lazy(() => import("./views/data"));
const Query = lazy(() => import("./views/query"));
const Dashboards = lazy(() => import("./views/dashboards"));
const Jobs = lazy(() => import("./views/jobs"));
const Config = lazy(() => import("./views/config"));

/** The views of one pipeline; addresses are relative to `/p/:slug`. */
function OfPipeline({ slug }: { slug: string }) {
  return (
    <PipelineFrame slug={slug}>
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
            <Nowhere />
          </Route>
        </Switch>
      </Suspense>
    </PipelineFrame>
  );
}

function Nowhere() {
  return (
    <Empty title="There is nothing at this address" actions={<a href={places.home()}>All pipelines</a>}>
      <code>{location.pathname}</code>
    </Empty>
  );
}

function Views() {
  return (
    <Shell>
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
          <Route path="/settings">
            <Settings />
          </Route>
          <Route path="/p/:slug" nest>
            {({ slug }) => <OfPipeline key={slug} slug={slug} />}
          </Route>
          <Route>
            <Nowhere />
          </Route>
        </Switch>
      </Suspense>
    </Shell>
  );
}

export function App() {
  const state = session.state.value;
  useEffect(() => {
    // The answer itself is noted by the client: 401 means that nobody is logged in.
    ask(api.GET("/api/auth/me")).then(
      () => session.opened(),
      () => undefined,
    );
  }, []);
  return (
    <>
      <Banner />
      {state === "out" && <LoginPage />}
      {(state === "in" || state === "lost") && (
        <Router aroundNav={guarded}>
          <Views />
        </Router>
      )}
      {state === "lost" && <LoginAgain />}
      <Toasts />
    </>
  );
}
