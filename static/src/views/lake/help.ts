export const help = {
  title: "Lake",
  text: [
    "The files that tables are made of. Files of a pipeline lie under pipelines/ and its slug; a new CSV there starts a run.",
    "Drop files or whole folders anywhere on the view to upload them into the folder that is open; the uploads go on while you look at something else.",
    "The state says which tables read a file and whether its rows are in them.",
    "A click on a file's name looks inside. Choose files with a click, Ctrl or Shift and click, or the space bar, then move, download or delete them.",
  ],
};
