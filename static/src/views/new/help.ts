export const help = {
  title: "From a CSV",
  text: [
    "Makes a pipeline from one file, or from several of the same shape. Nothing is kept until you confirm.",
    "What was found says how the file is written; each part shows what speaks for it and can be changed, and the preview follows.",
    "Columns can be renamed, typed differently or left out. The preview shows the first rows as the table will have them; refused cells are marked with the reason.",
    "Create, upload and run makes the pipeline, uploads the files whole and shows the table once the first run is done. It goes on if you leave.",
  ],
};
