#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cmd/migrate_action.hpp"
#include "schema/migration_files.hpp"

namespace mailroom {
namespace {

ExitCode run_export(const std::string& folder, Context& context) {
  const auto& migrations = embedded_migrations();
  const auto written = export_migrations(migrations, folder);
  const auto present = 2 * migrations.size() - written;
  if (context.global().output == OutputFormat::json) {
    const nlohmann::ordered_json object{{"folder", folder}, {"written", written}, {"present", present}};
    context.print(json_text(object) + "\n");
  } else {
    context.print(fmt::format("{}: {} files written{}\n", folder, written,
                              present == 0 ? "" : fmt::format(", {} there already", present)));
  }
  return ExitCode::done;
}

MigrateRun add_export(CommandSyntax& syntax) {
  auto folder = std::make_shared<std::string>();
  syntax.text("DIR", *folder, "where to; made if it is not there").required();
  return
      [folder](const MigrateOptions& /*options*/, Context& context) { return run_export(*folder, context); };
}

MigrateRun add_new(CommandSyntax& syntax) {
  auto name = std::make_shared<std::string>();
  auto folder = std::make_shared<std::string>("migrations");
  syntax.text("NAME", *name, "what it is called: add_locale").required();
  syntax.text("--dir DIR", *folder, "where the migrations are [migrations]");
  return [name, folder](const MigrateOptions& /*options*/, Context& context) {
    for (const auto& path : new_migration(*folder, *name)) {
      const bool json = context.global().output == OutputFormat::json;
      const auto line = json ? json_text(nlohmann::json{{"file", path.string()}}) : path.string();
      context.print(line + "\n");
    }
    return ExitCode::done;
  };
}

}  // namespace

const MigrateAction migrate_export_action{
    "export", "write the migrations into the folder DIR, for review or for golang-migrate", "", add_export};

const MigrateAction migrate_new_action{
    "new", "begin the migration NAME of mailroom itself, in its source tree", "", add_new};

}  // namespace mailroom
