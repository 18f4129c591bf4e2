// Shows the expected and the found definition of each object, and functions as a diff.

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "cmd/migrate/migrate_action.hpp"
#include "schema/drift.hpp"

namespace mailroom::cmd {
namespace {

/// How to print definitions.
struct DriftPaint {
  bool colour = false;
  std::size_t width = 0;  ///< of the terminal, to which long definitions are wrapped; 0: not wrapped
};

constexpr const char* red = "\x1b[31m";
constexpr const char* green = "\x1b[32m";

DriftPaint paint_for(Context& context) {
  return {.colour = context.colour_on(context.out()), .width = context.out().columns().value_or(0)};
}

long newest_version() {
  return schema::embedded_migrations().back().version;
}

std::string title_of(int version) {
  return schema::embedded_migrations().at(static_cast<std::size_t>(version)).title();
}

/// What makes an object as it should be: `0_init`, or `functions/claim.sql`; empty if nothing does.
std::string origin_of(const schema::Verification& verification, const schema::Difference& difference) {
  if (!difference.made) return {};
  const auto file =
      schema::embedded_functions().file_of(difference.name.substr(0, difference.name.find('(')));
  const bool is_of_set =
      difference.kind == schema::ObjectKind::function && verification.version == newest_version();
  return is_of_set && !file.empty() ? file : title_of(*difference.made);
}

std::string painted(const std::string& text, const char* paint, bool colour) {
  return colour && *paint != '\0' ? paint + text + "\x1b[0m" : text;
}

/// A definition after its label, aligned.
std::string labelled(const std::string& label, const char* paint_of_label, const std::string& definition,
                     DriftPaint paint) {
  constexpr std::size_t indent = 14;
  const auto text = printable(definition);
  return fmt::format("    {}{}{}\n", painted(label, paint_of_label, paint.colour),
                     std::string(indent - 4 - label.size(), ' '),
                     paint.width > 0 ? wrapped(text, paint.width, indent, indent) : text);
}

std::string lines_that_differ(const schema::Difference& difference, DriftPaint paint) {
  std::string text;
  for (const auto& line :
       schema::only_changes(schema::diff_lines(difference.expected, difference.found), 1)) {
    const char mark = line.side == schema::DiffLine::Side::both     ? ' '
                      : line.side == schema::DiffLine::Side::before ? '-'
                                                                    : '+';
    const auto shown =
        fmt::format("{} {}", mark, line.text == "…" ? std::string(ellipsis()) : printable(line.text));
    text += "    " + (mark == ' ' ? shown : painted(shown, mark == '-' ? red : green, paint.colour)) + "\n";
  }
  return text;
}

std::string qualified(const schema::Verification& verification, const schema::Difference& difference) {
  return printable(fmt::format("{}.{}", verification.schema, difference.name));
}

std::string title_line(const std::string& title, DriftPaint paint) {
  constexpr std::size_t indent = 4;
  return "  " + (paint.width > 0 ? wrapped(title, paint.width, indent, 2) : title) + "\n";
}

std::string render_difference(const schema::Verification& verification, const schema::Difference& difference,
                              DriftPaint paint) {
  const auto* const verdict = difference.found.empty()      ? "is missing"
                              : difference.expected.empty() ? "should not be there"
                                                            : "differs";
  const auto origin = origin_of(verification, difference);
  const auto made = origin.empty() ? std::string() : " (" + origin + ")";
  auto text = title_line(fmt::format("{} {} {}{}", schema::object_kind_word(difference.kind),
                                     qualified(verification, difference), verdict, made),
                         paint);
  if (difference.found.empty() ||
      (difference.kind == schema::ObjectKind::table && difference.expected.empty()))
    return text;
  const bool is_function = difference.kind == schema::ObjectKind::function;
  if (difference.expected.empty()) {
    return is_function ? text : text + labelled("found", green, difference.found, paint);
  }
  if (is_function) return text + lines_that_differ(difference, paint);
  return text + labelled("expected", red, difference.expected, paint) +
         labelled("found", green, difference.found, paint);
}

std::string render_edited(const schema::EditedMigration& edited, DriftPaint paint) {
  return title_line(
      fmt::format("file {}.up.sql differs from what was {} at {} by {} with mailroom {}",
                  title_of(edited.version), edited.direction == "up" ? "applied" : "recorded",
                  precise_moment_text(edited.at), shown_text(edited.actor), shown_text(edited.made_by)),
      paint);
}

std::string differences_text(const schema::Verification& verification, DriftPaint paint) {
  std::string text;
  for (const auto& edited : verification.edited)
    text += render_edited(edited, paint);
  for (const auto& difference : verification.drift.differences)
    text += render_difference(verification, difference, paint);
  if (!verification.drift.additions.empty()) text += "added by others, not drift:\n";
  for (const auto& addition : verification.drift.additions) {
    text += title_line(fmt::format("{} {}", schema::object_kind_word(addition.kind),
                                   qualified(verification, addition)),
                       paint) +
            labelled("found", "", addition.found, paint);
  }
  return text;
}

/// How a schema compares with the migrations.
const char* verification_state(const schema::Verification& verification) {
  if (verification.dirty) return "dirty";
  if (verification.match == schema::SchemaMatch::earlier_form) return "earlier form";
  if (!verification.is_recorded && verification.match != schema::SchemaMatch::fits) return "unrecorded";
  if (!verification.drift.differences.empty() || !verification.edited.empty()) return "drifted";
  return verification.lacks_functions() ? "pending" : "matches";
}

/// What is to be said of functions that were not compared.
std::string functions_text(const schema::Verification& verification) {
  if (verification.version != newest_version()) return {};
  switch (verification.functions) {
    case schema::FunctionState::absent:
      return ", but has no functions";
    case schema::FunctionState::older:
      return ", but its functions are those of an older mailroom";
    case schema::FunctionState::elsewhere:
      return ", but its functions look for the tables in another schema: it was renamed";
    case schema::FunctionState::newer:
      return "; its functions are those of a newer mailroom, and were not compared";
    case schema::FunctionState::current:
      break;
  }
  return {};
}

const char* functions_word(schema::FunctionState functions) {
  constexpr std::array<const char*, 5> words{"absent", "older", "elsewhere", "current", "newer"};
  return words.at(static_cast<std::size_t>(functions));
}

/// True if a function of the set differs from what this binary makes.
bool has_changed_functions(const schema::Verification& verification) {
  return std::ranges::any_of(verification.drift.differences, [&](const schema::Difference& difference) {
    return origin_of(verification, difference).starts_with("functions/");
  });
}

std::string headline(const schema::Verification& verification) {
  const std::string state = verification_state(verification);
  const auto newest = newest_version();
  const auto version = verification.version == newest
                           ? fmt::format("version {}, the newest", newest)
                           : fmt::format("version {}; the newest is {}", verification.version, newest);
  if (verification.drift.differences.empty() && verification.edited.empty())
    return fmt::format("{}: the schema {} is as the migrations build {}{}\n", state, verification.schema,
                       version, functions_text(verification));
  return fmt::format(
      "{}: {} from version {}{} of the schema {}\n", state, verification.differ_text(), verification.version,
      verification.is_recorded ? "" : ", the nearer of the first and the newest,", verification.schema);
}

std::string advice(const schema::Verification& verification) {
  if (verification.dirty) return "mailroom migrate status shows how to fix a dirty schema\n";
  if (verification.match == schema::SchemaMatch::earlier_form) {
    return std::string("To convert it to version 0, run this, and then mailroom migrate:\n\n") +
           schema::earlier_form_conversion(verification);
  }
  if (!verification.is_recorded && verification.drift.differences.empty()) {
    return "The version is not recorded. mailroom migrate records it, and continues from there.\n";
  }
  if (!verification.is_recorded) {
    return "Fix the differences, or record the version V that made the tables: mailroom migrate baseline V\n";
  }
  if (!verification.drift.differences.empty()) {
    return "mailroom migrate export writes the files that are named in brackets.\n" +
           (has_changed_functions(verification)
                ? fmt::format("mailroom migrate goto {} makes the functions anew.\n", verification.version)
                : std::string());
  }
  if (!verification.edited.empty()) {
    return fmt::format("The schema itself matches; mailroom migrate baseline {} accepts the new text.\n",
                       verification.version);
  }
  if (verification.lacks_functions()) return "mailroom migrate makes the functions anew.\n";
  return {};
}

nlohmann::ordered_json as_json(const schema::Verification& verification,
                               const schema::Difference& difference) {
  nlohmann::ordered_json object{{"kind", schema::object_kind_word(difference.kind)},
                                {"object", verification.schema + "." + difference.name},
                                {"migration", nullptr},
                                {"expected", nullptr},
                                {"found", nullptr}};
  if (const auto origin = origin_of(verification, difference); !origin.empty()) object["migration"] = origin;
  if (!difference.expected.empty()) object["expected"] = difference.expected;
  if (!difference.found.empty()) object["found"] = difference.found;
  return object;
}

}  // namespace

std::string render_differences(const schema::Verification& verification, Context& context) {
  return differences_text(verification, paint_for(context));
}

std::string render_verification(const schema::Verification& verification, Context& context) {
  const auto paint = paint_for(context);
  // Not wrapped: the conversion of the earlier form is SQL to run.
  const auto width = verification.match == schema::SchemaMatch::earlier_form ? 0 : paint.width;
  return folded(headline(verification), paint.width) + differences_text(verification, paint) +
         folded(advice(verification), width);
}

nlohmann::ordered_json verification_object(const schema::Verification& verification) {
  nlohmann::ordered_json object{{"state", verification_state(verification)},
                                {"schema", verification.schema},
                                {"version", verification.version},
                                {"newest", newest_version()},
                                {"recorded", verification.is_recorded},
                                {"checksums", verification.checksums},
                                {"functions", functions_word(verification.functions)},
                                {"differences", nlohmann::ordered_json::array()},
                                {"additions", nlohmann::ordered_json::array()},
                                {"edited", nlohmann::ordered_json::array()}};
  for (const auto& difference : verification.drift.differences)
    object["differences"].push_back(as_json(verification, difference));
  for (const auto& addition : verification.drift.additions)
    object["additions"].push_back(as_json(verification, addition));
  for (const auto& edited : verification.edited) {
    object["edited"].push_back({{"migration", title_of(edited.version)},
                                {"direction", edited.direction},
                                {"at", precise_moment_text(edited.at)},
                                {"actor", edited.actor},
                                {"mailroom_version", edited.made_by}});
  }
  return object;
}

}  // namespace mailroom::cmd
