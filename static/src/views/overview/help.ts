export const help = {
  title: "Overview",
  text: [
    "The first sentence says how the pipeline is and offers the next step.",
    "Below are the tables with what they hold, the last runs, what the last run that changed anything changed, and what the tables take.",
    "Up to date means: the last run took every CSV that the lake had then. When more arrive, the next run counts down here.",
  ],
};
