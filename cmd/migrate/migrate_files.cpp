// migrate export: the migrations as files in a directory.

#include <fmt/format.h>

#include "base/json.hpp"
#include "cmd/migrate/migrate_action.hpp"
#include "schema/migration_files.hpp"

namespace mailroom::cmd {

ExitCode migrate_export(const MigrateOptions& options, Context& context) {
  const auto files =
      schema::exported_files(schema::embedded_migrations(), schema::embedded_functions().migration);
  const auto written = schema::write_files(files, options.directory);
  const auto present = files.size() - written;
  if (context.global().output == OutputFormat::json) {
    const nlohmann::ordered_json object{
        {"directory", options.directory}, {"written", written}, {"present", present}};
    context.print(json_text(object) + "\n");
  } else {
    context.print(fmt::format("{}: {} files written{}\n", options.directory, written,
                              present == 0 ? "" : fmt::format(", {} already there", present)));
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
