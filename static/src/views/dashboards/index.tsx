import { lazy, Suspense } from "preact/compat";
import { Route, Switch } from "wouter-preact";
import { Skeleton } from "../../components/states";
import { List } from "./list";
import { View } from "./view";

const Edit = lazy(() => import("./edit"));

export default function DashboardsView({ slug }: { slug: string }) {
  return (
    <Suspense fallback={<Skeleton lines={6} />}>
      <Switch>
        <Route path="/dashboards/:name/edit">
          {({ name }) => <Edit key={name} slug={slug} name={decodeURIComponent(name)} />}
        </Route>
        <Route path="/dashboards/:name">
          {({ name }) => <View key={name} slug={slug} name={decodeURIComponent(name)} />}
        </Route>
        <Route>
          <List slug={slug} />
        </Route>
      </Switch>
    </Suspense>
  );
}
