export const help = {
  title: "Jobs",
  text: [
    "A job is one run of the pipeline: it reads the CSVs that are new or changed, and rebuilds the partitions that they contribute to. A run starts 5 seconds after the last upload.",
    "Choose a job to see what became of the rows of each file: rows read are written, rejected or filtered, and nothing is lost between.",
    "A failed run changes no table. Its detail says what happened, where, and what to do; retry it once that is mended.",
    "A clean run reads everything again and deletes what no CSV gives any more.",
  ],
};
