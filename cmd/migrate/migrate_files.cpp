#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cmd/migrate/migrate_action.hpp"
#include "schema/migration_files.hpp"

namespace mailroom {
namespace {

ExitCode run_export(const std::string& directory, Context& context) {
  const auto& migrations = embedded_migrations();
  const auto written = export_migrations(migrations, directory);
  const auto present = 2 * migrations.size() - written;
  if (context.global().output == OutputFormat::json) {
    const nlohmann::ordered_json object{{"directory", directory}, {"written", written}, {"present", present}};
    context.print(json_text(object) + "\n");
  } else {
    context.print(fmt::format("{}: {} files written{}\n", directory, written,
                              present == 0 ? "" : fmt::format(", {} already there", present)));
  }
  return ExitCode::done;
}

MigrateRun add_export(CommandSyntax& syntax) {
  auto directory = std::make_shared<std::string>();
  syntax.text("DIR", *directory, "write to this directory, which is created if necessary").required();
  return [directory](const MigrateOptions& /*options*/, Context& context) {
    return run_export(*directory, context);
  };
}

MigrateRun add_new(CommandSyntax& syntax) {
  auto name = std::make_shared<std::string>();
  auto directory = std::make_shared<std::string>("migrations");
  syntax.text("NAME", *name, "name the migration, for example add_locale").required();
  syntax.text("--dir DIR", *directory, "write to this directory [migrations]");
  return [name, directory](const MigrateOptions& /*options*/, Context& context) {
    for (const auto& path : new_migration(*directory, *name)) {
      const bool json = context.global().output == OutputFormat::json;
      const auto line = json ? json_text(nlohmann::json{{"file", path.string()}}) : path.string();
      context.print(line + "\n");
    }
    return ExitCode::done;
  };
}

}  // namespace

const MigrateAction migrate_export_action{
    "export", "write the migrations to directory DIR, for review or for golang-migrate", "", add_export};

const MigrateAction migrate_new_action{
    "new", "create the files of a new migration NAME in mailroom's source tree", "", add_new};

}  // namespace mailroom
