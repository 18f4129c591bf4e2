#pragma once

#include <vector>

#include "cmd/migrate/migrate_action.hpp"
#include "schema/losses.hpp"
#include "schema/migrator.hpp"

namespace mailroom {

/// Prints each step as a line of text or a JSON object. On a terminal the line starts when the step begins.
class StepPrinter final : public MigrationObserver {
 public:
  StepPrinter(const MigrateOptions& options, Context& context) : options_(options), context_(context) {}
  /// Ends the line of a step that failed.
  ~StepPrinter() override;
  StepPrinter(const StepPrinter&) = delete;
  StepPrinter& operator=(const StepPrinter&) = delete;

  void begins(const MigrationStep& step) override;
  void ended(const MigrationStep& step, Milliseconds took) override;
  void locked_out(const MigrationStep& step, const std::string& holder, Milliseconds pause) override;

 private:
  bool is_json() const { return context_.global().output == OutputFormat::json; }
  void end_line();

  const MigrateOptions& options_;
  Context& context_;
  bool within_line_ = false;
};

/// What going down deletes, one line per table or column: `  tokens   1,000 rows`.
std::string render_losses(const std::vector<Loss>& losses);

}  // namespace mailroom
