import { useSignal } from "@preact/signals";
import { useQuery } from "@tanstack/preact-query";
import { aboutQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Section } from "../../components/page";
import { Countdown } from "../../components/time";
import { toast } from "../../components/toasts";
import { duration } from "../../format/time";
import { logout } from "../../shell/login";

/** Expiry of the session, and logout. */
export function SessionPart() {
  const { data } = useQuery(aboutQuery());
  const busy = useSignal(false);
  const leave = async () => {
    busy.value = true;
    try {
      await logout();
    } catch (error) {
      toast.failed("Couldn't log out", error);
      busy.value = false;
    }
  };
  const session = data?.session;
  return (
    <Section title="Session">
      <div class="card settings-session">
        <p class="grow">
          {session ? (
            <>
              Expires after {duration(session.idle_s * 1_000)} of inactivity
              {session.expires_at && (
                <>
                  , at the latest <Countdown to={session.expires_at} />
                </>
              )}
              . Your unsaved changes are kept when you log in again.
            </>
          ) : (
            <span class="dim">Expiry unknown.</span>
          )}
        </p>
        <Button busy={busy.value} onClick={() => void leave()}>
          Log out
        </Button>
      </div>
    </Section>
  );
}
