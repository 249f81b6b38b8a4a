export const help = {
  title: "Jobs",
  text: [
    "A job is one run of the pipeline. It reads new and changed CSVs, rewrites the files that they belong to, and removes the rows of deleted CSVs unless the table keeps them. A run starts 5 seconds after the last upload.",
    "Select a job to see the row counts of each file. Every row that is read is written, rejected or filtered.",
    "A failed run changes no tables. Its details show the cause, the location and how to fix it. Retry after fixing the problem.",
    "A clean run reads every CSV again, rebuilds every table, and deletes tables that are no longer in the config.",
  ],
};
