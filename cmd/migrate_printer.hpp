#pragma once

#include <vector>

#include "cmd/migrate_action.hpp"
#include "schema/losses.hpp"
#include "schema/migrator.hpp"

namespace mailroom {

/// Tells of each step: a line of text, begun on a terminal when the step begins, or a JSON object.
class StepPrinter final : public MigrationObserver {
 public:
  StepPrinter(const MigrateOptions& options, Context& context) : options_(options), context_(context) {}
  /// Ends the line that a step which failed has begun.
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

/// What going down deletes, a line each: `  tokens   1,000 rows`.
std::string render_losses(const std::vector<Loss>& losses);

}  // namespace mailroom
