import { useSignal } from "@preact/signals";
import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { notificationsQuery, sendTest, type NotificationPage, type NotificationRecord } from "../../api/notifications";
import { Button } from "../../components/button";
import { Section } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { Badge, type Tone } from "../../components/status";
import { Time } from "../../components/time";
import { toast } from "../../components/toasts";

type Delivery = NotificationRecord["deliveries"][number];

const TONES: Record<Delivery["state"], Tone> = { sent: "ok", pending: "run", failed: "bad" };

function DeliveryLine({ delivery }: { delivery: Delivery }) {
  const { kind, host, state, error } = delivery;
  return (
    <p class="secondary">
      <Badge tone={TONES[state]}>{state}</Badge> {kind} at <code>{host}</code>
      {error && <span class="dim">: {error}</span>}
    </p>
  );
}

function Row({ record }: { record: NotificationRecord }) {
  return (
    <li>
      <p class="row">
        <span class="grow cut" title={record.text}>
          {record.title}
        </span>
        <span class="dim">
          <Time at={record.at} />
        </span>
      </p>
      {record.deliveries.map((delivery) => (
        <DeliveryLine key={delivery.id} delivery={delivery} />
      ))}
      {record.deliveries.length === 0 && (
        <p class="secondary">
          <Badge>waiting</Badge>
        </p>
      )}
    </li>
  );
}

function Sent({ page }: { page: NotificationPage }) {
  const cache = useQueryClient();
  const busy = useSignal(false);
  const test = async () => {
    busy.value = true;
    try {
      await sendTest(cache);
    } catch (error) {
      toast.failed("Couldn't send the test", error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <div class="settings-session">
        <p class="grow">
          {page.targets.length === 0 ? (
            <>
              No targets yet. Set <code>SVC_NOTIFY_URL</code> to be notified of failed runs.
            </>
          ) : (
            `Sent to ${page.targets.map(({ kind, host }) => `${kind} at ${host}`).join(", ")}.`
          )}
        </p>
        <Button busy={busy.value} disabled={page.targets.length === 0} onClick={() => void test()}>
          Send test
        </Button>
      </div>
      {page.notifications.length > 0 && (
        <ol class="settings-notifications">
          {page.notifications.map((record) => (
            <Row key={record.id} record={record} />
          ))}
        </ol>
      )}
    </>
  );
}

/** Notification targets, and sent notifications. */
export function Notifications() {
  const { data, error, refetch } = useQuery(notificationsQuery());
  return (
    <Section title="Notifications">
      <div class="card stack">
        {error && !data ? (
          <Failed title="Couldn't load the notifications" error={error} onRetry={() => void refetch()} />
        ) : data ? (
          <Sent page={data} />
        ) : (
          <Skeleton lines={3} />
        )}
      </div>
    </Section>
  );
}
