export const help = {
  title: "Overview",
  text: [
    "The first line shows the health of the pipeline and the next step.",
    "Below are the tables, the last runs, the latest changes and the storage used.",
    "Up to date means that the last run read every CSV in the lake at that time. When more files arrive, the time until the next run is shown here.",
  ],
};
