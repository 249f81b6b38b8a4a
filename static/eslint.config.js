import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

/** Ways to insert text into a page other than `textContent`, or to run text as code. */
const unsafe = [
  ["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc"].map((name) => ({
    selector: `MemberExpression[property.name='${name}'], JSXAttribute[name.name='${name}']`,
    message: "text goes into the page as text, never as markup",
  })),
  {
    selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
    message: "text goes into the page as text, never as markup",
  },
  {
    selector: "CallExpression[callee.property.name='write'][callee.object.name='document']",
    message: "no document.write",
  },
].flat();

/** The layers of src/, the lowest first; imports go down only. */
const layers = [
  ["browser"],
  ["api"],
  ["format"],
  ["components"],
  ["uploads", "runs", "boards", "tables"],
  ["shell"],
  ["views"],
  ["app"],
];
/** Code shared by two views belongs below them. */
const sideward = { regex: "^\\.\\./(?!\\.\\./)", message: "views import nothing of one another" };
const downward = layers.flatMap((names, rank) =>
  names.map((name) => ({
    files: [`src/${name}/**`],
    rules: {
      "@typescript-eslint/no-restricted-imports": [
        "error",
        {
          patterns: layers
            .slice(rank + 1)
            .map((above) => ({
              group: above.map((one) => `**/${one}/**`).concat(above.map((one) => `**/${one}`)),
              message: `src/${name} is below`,
            }))
            .concat(name === "views" ? sideward : []),
        },
      ],
    },
  })),
);

export default tseslint.config(
  { ignores: ["dist", "node_modules", "src/api/schema.d.ts", "test-results", "public"] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js"] } } },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "no-restricted-syntax": ["error", ...unsafe],
      "no-eval": "error",
      "no-console": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
    },
  },
  ...downward,
  // Playwright passes fixtures through a function called `use`.
  { files: ["tests/**"], rules: { "react-hooks/rules-of-hooks": "off", "no-empty-pattern": "off" } },
);
