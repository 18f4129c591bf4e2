// What counts as drift, which migration created an object, and which binary may use a newer schema.

#include "schema/drift.hpp"

#include "base/terminal_text.hpp"
#include "schema/bookkeeping.hpp"
#include "support/catch.hpp"

namespace mailroom::test::drift_test {
namespace {

const schema::CatalogueKey tokens{schema::ObjectKind::table, "tokens"};
const schema::CatalogueKey secret{schema::ObjectKind::column, "tokens.secret"};
const schema::CatalogueKey notify{schema::ObjectKind::function, "notify()"};

schema::CatalogueEntry function(const std::string& head, const std::string& body) {
  return {.definition = head + "AS $function$" + body + "$function$\n", .body_digest = "digest of " + body};
}

/// Version 0 has a table with a column and a function, version 1 changes the column's type, version 2 changes
/// the function's body and adds a table.
std::vector<schema::Catalogue> three_versions() {
  const schema::Catalogue first{{tokens, {.definition = "table"}},
                                {secret, {.definition = "text", .table = "tokens"}},
                                {notify, function("CREATE\n", "old")}};
  auto second = first;
  second[secret].definition = "bytea";
  auto third = second;
  third[notify] = function("CREATE\n", "new");
  third[{schema::ObjectKind::table, "gaps"}] = {.definition = "table"};
  third[{schema::ObjectKind::column, "gaps.id"}] = {.definition = "bigint", .table = "gaps"};
  return {first, second, third};
}

/// `column tokens.secret: bytea by 1, found text`
std::string text_of(const std::vector<schema::Difference>& differences) {
  std::string text;
  for (const auto& difference : differences) {
    text += std::string(text.empty() ? "" : "; ") + schema::object_kind_word(difference.kind) + " " +
            difference.name;
    if (difference.expected.empty()) text += " unexpected";
    if (difference.found.empty()) text += " missing";
    if (difference.made) text += " by " + std::to_string(*difference.made);
  }
  return text;
}

std::string drift_of(std::size_t version, const schema::Catalogue& found) {
  return text_of(schema::compare(three_versions(), version, found).differences);
}

std::string additions_of(const schema::CatalogueKey& key, const schema::CatalogueEntry& entry) {
  auto found = three_versions()[2];
  found[key] = entry;
  const auto drift = schema::compare(three_versions(), 2, found);
  return "drift: " + text_of(drift.differences) + ", added: " + text_of(drift.additions);
}

std::string refusal(long version, long newest, long minimum) {
  try {
    schema::require_fitting(version, newest, minimum);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::schema);
    return error.hint();
  }
  return "fits";
}

}  // namespace

TEST_CASE("a catalogue fits its own version and no other") {
  const auto built = three_versions();
  for (std::size_t version = 0; version < 3; ++version) {
    for (std::size_t other = 0; other < 3; ++other) {
      CAPTURE(version, other);
      CHECK(drift_of(version, built[other]).empty() == (version == other));
    }
  }
}

TEST_CASE("a difference names the version that causes it") {
  const auto built = three_versions();
  CHECK(drift_of(1, built[0]) == "column tokens.secret by 1");
  CHECK(drift_of(2, built[1]) == "table gaps missing by 2; function notify() by 2");
  CHECK(drift_of(1, built[2]) == "table gaps unexpected by 2; function notify() by 0");
}

TEST_CASE("columns of a missing table are not reported separately") {
  auto found = three_versions()[2];
  found.erase(tokens);
  found.erase(secret);
  CHECK(drift_of(2, found) == "table tokens missing by 0");
}

TEST_CASE("additions by an application are no drift unless they interfere") {
  CHECK(
      additions_of({schema::ObjectKind::column, "tokens.phone"}, {.definition = "text", .table = "tokens"}) ==
      "drift: , added: column tokens.phone unexpected");
  CHECK(additions_of({schema::ObjectKind::index, "mine"}, {.definition = "index", .table = "tokens"}) ==
        "drift: , added: index mine unexpected");
  // Inserts would fail: a trigger inserts the tokens and does not set this column.
  CHECK(additions_of({schema::ObjectKind::column, "tokens.phone"},
                     {.definition = "text NOT NULL", .table = "tokens", .must_be_given = true}) ==
        "drift: column tokens.phone unexpected, added: ");
  CHECK(additions_of({schema::ObjectKind::constraint, "tokens.mine"},
                     {.definition = "CHECK", .table = "tokens", .columns = {"phone"}}) ==
        "drift: , added: constraint tokens.mine unexpected");
  CHECK(additions_of({schema::ObjectKind::constraint, "tokens.mine"},
                     {.definition = "CHECK", .table = "tokens", .columns = {"phone", "secret"}}) ==
        "drift: constraint tokens.mine unexpected, added: ");
  CHECK(additions_of({schema::ObjectKind::constraint, "tokens.mine"},
                     {.definition = "CHECK (false)", .table = "tokens"}) ==
        "drift: constraint tokens.mine unexpected, added: ");
  CHECK(additions_of({schema::ObjectKind::trigger, "tokens.mine"},
                     {.definition = "TRIGGER", .table = "tokens"}) ==
        "drift: trigger tokens.mine unexpected, added: ");
  CHECK(additions_of({schema::ObjectKind::function, "notify(text)"}, {.definition = "FUNCTION"}) ==
        "drift: function notify(text) unexpected, added: ");
}

TEST_CASE("whatever an application adds to accounts is no drift") {
  auto built = three_versions();
  const schema::CatalogueKey accounts{schema::ObjectKind::table, "accounts"};
  const schema::CatalogueKey owns{schema::ObjectKind::trigger, "accounts.ours"};
  for (auto& version : built) {
    version[accounts] = {.definition = "table"};
    version[owns] = {.definition = "TRIGGER", .table = "accounts"};
  }
  auto found = built[2];
  for (const auto kind : {schema::ObjectKind::column, schema::ObjectKind::constraint,
                          schema::ObjectKind::trigger, schema::ObjectKind::rule})
    found[{kind, "accounts.mine"}] = {.definition = "mine", .table = "accounts", .must_be_given = true};
  found[accounts].definition = "table with row level security";
  auto drift = schema::compare(built, 2, found);
  CHECK(text_of(drift.differences).empty());
  CHECK(drift.additions.size() == 5);
  // Row security on every table is a setting of the host, on some tables it is not.
  found[tokens].definition = "table with row level security";
  CHECK(text_of(schema::compare(built, 2, found).differences) == "table tokens by 0");
  found[{schema::ObjectKind::table, "gaps"}].definition = "table with row level security";
  CHECK(schema::compare(built, 2, found).differences.empty());
  found[tokens].definition = found[{schema::ObjectKind::table, "gaps"}].definition = "table";
  // Its own objects must be as they were made.
  found[owns].definition = "TRIGGER (disabled)";
  found[accounts].definition = "unlogged table";
  drift = schema::compare(built, 2, found);
  CHECK(text_of(drift.differences) == "table accounts by 0; trigger accounts.ours by 0");
}

TEST_CASE("a known body is accepted in place of version 0's, and not of a later version's") {
  const schema::KnownBodies known{{"notify()", "digest of foreign"}};
  auto found = three_versions()[1];
  found[notify] = function("CREATE\n", "foreign");
  CHECK(schema::compare(three_versions(), 1, found, known).differences.empty());
  CHECK(text_of(schema::compare(three_versions(), 1, found, {}).differences) == "function notify() by 0");
  // The function's properties must match.
  found[notify] = function("CREATE\n SECURITY DEFINER\n", "foreign");
  CHECK(text_of(schema::compare(three_versions(), 1, found, known).differences) == "function notify() by 0");
  found = three_versions()[2];
  found[notify] = function("CREATE\n", "foreign");
  CHECK(text_of(schema::compare(three_versions(), 2, found, known).differences) == "function notify() by 2");
}

TEST_CASE("a binary works on its own schema, and on a newer one as far as that allows it") {
  CHECK(refusal(8, 8, 6) == "fits");
  CHECK(refusal(9, 8, 0) == "fits");
  CHECK(refusal(9, 8, 8) == "fits");
  CHECK(refusal(9, 8, 9).find("upgrade mailroom") == 0);
  CHECK(refusal(7, 8, 6) == "run: mailroom migrate");
}

TEST_CASE("changed lines are shown between unchanged ones") {
  using Side = schema::DiffLine::Side;
  const auto lines = schema::diff_lines("a\nb\nc\nd\n", "a\nc\nx\nd");
  CHECK(
      lines ==
      std::vector<schema::DiffLine>{
          {Side::both, "a"}, {Side::before, "b"}, {Side::both, "c"}, {Side::after, "x"}, {Side::both, "d"}});
  CHECK(schema::diff_lines("", "").empty());
  CHECK(schema::diff_lines("a", "") == std::vector<schema::DiffLine>{{Side::before, "a"}});
  CHECK(schema::diff_lines("", "a") == std::vector<schema::DiffLine>{{Side::after, "a"}});
}

TEST_CASE("lines far from a change are omitted") {
  using Side = schema::DiffLine::Side;
  const auto lines =
      schema::only_changes(schema::diff_lines("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n5\n6\n7\n"), 1);
  CHECK(lines == std::vector<schema::DiffLine>{{Side::both, "…"},
                                               {Side::both, "3"},
                                               {Side::before, "4"},
                                               {Side::after, "x"},
                                               {Side::both, "5"},
                                               {Side::both, "…"}});
  CHECK(schema::only_changes({}, 1).empty());
}

TEST_CASE("text is wrapped between words, and a long word has its own line") {
  CHECK(wrapped("aa bb cc", 5, 2) == "aa bb\n  cc");
  CHECK(wrapped("aa bb cc dd", 7, 2, 2) == "aa bb\n  cc dd");
  CHECK(wrapped("aa bb", 0, 2) == "aa bb");
  CHECK(folded("a\n  bb cc dd\n\n", 7) == "a\n  bb cc\n  dd\n\n");
  CHECK(wrapped("a bbbbbbbb c", 4, 1) == "a\n bbbbbbbb\n c");
}

}  // namespace mailroom::test::drift_test
