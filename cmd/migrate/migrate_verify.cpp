#include "cmd/migrate/migrate_action.hpp"
#include "cmd/migrate/migrate_verify_report.hpp"

namespace mailroom {
namespace {

ExitCode run_migrate_verify(const MigrateOptions& options, Context& context) {
  const auto connection = connect_to_migrate(options, context);
  const auto verification = verify_schema(*connection);
  if (verification.verdict == Recognition::Verdict::not_ours) {
    require_recognised({.verdict = verification.verdict}, verification.schema);
  }
  if (context.global().output == OutputFormat::json) {
    print_object(verification_object(verification), context.out());
  } else {
    context.print(render_verification(verification, paint_for(context)));
  }
  return verification.is_sound() ? ExitCode::done : ExitCode::schema;
}

MigrateRun add_migrate_verify(CommandSyntax& /*syntax*/) {
  return run_migrate_verify;
}

}  // namespace

const MigrateAction migrate_verify_action{
    "verify", "compare the schema with what the migrations build; exit code 5 if it differs", "--wait",
    add_migrate_verify};

}  // namespace mailroom
