// Reads KQL from the files that are named, and prints one line of JSON for each with the errors that Microsoft's language
// service finds. The first argument has more columns for the table traces, as KQL declares them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { runInThisContext } from "node:vm";

const require = createRequire(import.meta.url);
for (const file of ["bridge.min.js", "Kusto.Language.Bridge.min.js"]) {
  runInThisContext(readFileSync(require.resolve(`@kusto/language-service-next/${file}`), "utf8"));
}
const { Symbols, GlobalState, KustoCode } = globalThis.Kusto.Language;
const [more, ...files] = process.argv.slice(2);
const traces = Symbols.TableSymbol.From(`(timestamp: datetime, message: string, severityLevel: int, customDimensions: dynamic, cloud_RoleInstance: string, cloud_RoleName: string, operation_Id: string${more})`).WithName("traces");
const members = globalThis.Bridge.toList([traces], Symbols.Symbol);
const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.$ctor3("insights", null, members, false));
for (const file of files) {
  const found = KustoCode.ParseAndAnalyze(readFileSync(file, "utf8"), globals).GetDiagnostics();
  const errors = globalThis.Bridge.toArray(found).filter((d) => d.Severity === "Error").map((d) => d.Message);
  console.log(JSON.stringify({ file, errors }));
}
