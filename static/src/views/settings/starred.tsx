import { useSignal } from "@preact/signals";
import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { ArrowDown, ArrowUp, X } from "lucide-preact";
import { Link } from "wouter-preact";
import { pipelinesQuery } from "../../api/queries";
import { isConflict, refreshed, saveSettings, type Tagged } from "../../api/settings";
import { IconButton } from "../../components/button";
import { Section } from "../../components/page";
import { toast } from "../../components/toasts";
import { routes } from "../../browser/routes";
import { moved } from "./merge";

/** Starred pipelines in sidebar order. */
export function Starred({ stored }: { stored: Tagged }) {
  const cache = useQueryClient();
  const { data: pipelines } = useQuery(pipelinesQuery());
  const titles = new Map(pipelines?.pipelines.map(({ slug, title }) => [slug, title]));
  const next = useSignal<string[] | undefined>(undefined);
  const starred = next.value ?? stored.settings.starred;
  const save = async (list: string[]) => {
    if (next.value) return;
    next.value = list;
    try {
      const answer = await saveSettings(cache, stored, { ...stored.settings, starred: list });
      if (isConflict(answer)) {
        await refreshed(cache);
        toast.failed("Couldn't save the order", new Error("the starred pipelines were changed elsewhere"));
      }
    } catch (error) {
      toast.failed("Couldn't save the order", error);
    } finally {
      next.value = undefined;
    }
  };
  return (
    <Section title="Starred pipelines">
      {starred.length === 0 ? (
        <p class="secondary">No starred pipelines yet. Select the star next to a pipeline's name.</p>
      ) : (
        <ol class="settings-starred card">
          {starred.map((slug, at) => (
            <li key={slug} class="row">
              <Link href={routes.pipeline(slug)} class="grow cut">
                {titles.get(slug) || slug}
                {titles.get(slug) && <code class="dim settings-slug">{slug}</code>}
              </Link>
              <IconButton
                label={`Move ${slug} up`}
                icon={<ArrowUp />}
                disabled={at === 0}
                onClick={() => void save(moved(starred, at, -1))}
              />
              <IconButton
                label={`Move ${slug} down`}
                icon={<ArrowDown />}
                disabled={at === starred.length - 1}
                onClick={() => void save(moved(starred, at, 1))}
              />
              <IconButton
                label={`Unstar ${slug}`}
                icon={<X />}
                onClick={() => void save(starred.filter((other) => other !== slug))}
              />
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}
