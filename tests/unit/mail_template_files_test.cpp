#include <limits>

#include "base/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::test::mail_template_files_test {

TEST_CASE("template files are read from a directory, and only regular ones of moderate size") {
  const TemporaryDirectory directory;
  const auto path = directory.path().string();
  directory.write("activation.txt", "{{> sign}}");
  directory.write("sign.mustache", "Bye");
  directory.write("activation.txt~", "old");
  directory.write(".hidden", "x");
  directory.write("notes.md", "x");
  const auto files = templates::read_template_files(path);
  CHECK(files.texts ==
        std::map<std::string, std::string>{{"activation.txt", "{{> sign}}"}, {"sign.mustache", "Bye"}});
  CHECK(files.ignored == std::vector<std::string>{"notes.md"});
  CHECK(*std::get<templates::RenderedMail>(
             templates::load_templates(path).render({.name = "activation"}, {}, 100))
             .text == "Bye");
  CHECK(templates::load_templates("").warnings().empty());
  const auto reason = [&](const std::string& of) {
    try {
      templates::read_template_files(of);
      return std::string("none");
    } catch (const Error& error) {
      CHECK(error.hint() == "send.templates or MAILROOM_SEND_TEMPLATES names the directory");
      return std::string(error.what());
    }
  };
  CHECK(reason(path + "/no") ==
        "cannot read the template directory " + path + "/no: No such file or directory");
  CHECK(reason(path + "/notes.md") ==
        "cannot read the template directory " + path + "/notes.md: Not a directory");
  directory.write("recovery.txt", std::string(templates::largest_template + 1, 'x'));
  CHECK(reason(path) == "cannot read the template " + path + "/recovery.txt: it is larger than 256 KiB");
  std::filesystem::remove(directory.path() / "recovery.txt");
  std::filesystem::create_directory(directory.path() / "recovery.html");
  CHECK(reason(path) == "cannot read the template " + path + "/recovery.html: it is not a file");
  std::filesystem::remove(directory.path() / "recovery.html");
  std::filesystem::create_symlink("nowhere", directory.path() / "gone.mustache");
  CHECK(reason(path) == "cannot read the template " + path + "/gone.mustache: No such file or directory");
}

TEST_CASE("a duration is in words, rounded to the nearest unit") {
  const std::vector<std::pair<std::int64_t, std::string>> cases{
      {-5, "1 minute"},     {0, "1 minute"},      {89, "1 minute"},
      {90, "2 minutes"},    {900, "15 minutes"},  {898, "15 minutes"},
      {3600, "60 minutes"}, {5399, "90 minutes"}, {5400, "2 hours"},
      {7200, "2 hours"},    {86'400, "24 hours"}, {129'599, "36 hours"},
      {129'600, "2 days"},  {259'200, "3 days"},  {1'000'000'000, "11,574 days"}};
  for (const auto& [seconds, words] : cases)
    CHECK(templates::duration_words(std::chrono::seconds(seconds)) == words);
  CHECK(templates::expiry_text(Moment(std::chrono::seconds(1'795'254'315))) == "2026-11-21 09:45 UTC");
  CHECK(templates::expiry_text(year_10000) == "after the year 9999");
  // No overflow, whatever the database holds.
  const templates::TemplateValues longest{.link = "",
                                          .valid_from = bounded_moment(std::chrono::seconds::min()),
                                          .expires_at = bounded_moment(std::chrono::seconds::max())};
  CHECK(templates::variables_of(longest).at("expires_in").text.ends_with(" days"));
  CHECK(templates::variables_of(longest).at("expires_at").members.at("year").text == "9999");
}

}  // namespace mailroom::test::mail_template_files_test
