// Which files the page of templates reads again, and what it says of a template that cannot be loaded.

#include "preview/template_catalogue.hpp"

#include "base/error.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::template_catalogue_test {
namespace {

void settle(preview::TemplateCatalogue& catalogue) {
  while (catalogue.poll() != preview::PreviewChange::none || catalogue.has_work()) {
  }
}

preview::TemplateCatalogue::Entry entry_of(const preview::TemplateCatalogue& catalogue,
                                           const std::string& name) {
  for (auto& entry : catalogue.entries()) {
    if (entry.name == name) return entry;
  }
  FAIL("there is no " << name);
  return {};
}

}  // namespace

TEST_CASE("a change of a file is seen, and only the list that is other is announced") {
  const TemporaryDirectory directory;
  directory.write("receipt.subject", "one\n");
  directory.write("receipt.de.txt", "text\n");
  preview::TemplateCatalogue catalogue(directory.path().string());
  settle(catalogue);
  CHECK(entry_of(catalogue, "receipt").locales == std::vector<std::string>{"", "de"});
  CHECK(catalogue.poll() == preview::PreviewChange::none);
  directory.write("receipt.subject", "two\n");
  CHECK(catalogue.poll() == preview::PreviewChange::mails);
  CHECK(catalogue.files_of("receipt").texts.at("receipt.subject") == "two\n");
  directory.write("receipt.fr.txt", "texte\n");
  CHECK(catalogue.poll() == preview::PreviewChange::list);
  CHECK(entry_of(catalogue, "receipt").locales.size() == 3);
  for (const auto* file : {"receipt.subject", "receipt.de.txt", "receipt.fr.txt"})
    std::filesystem::remove(directory.path() / file);
  CHECK(catalogue.poll() == preview::PreviewChange::list);
  CHECK(catalogue.entries().size() == 2);  // the built-in ones
}

TEST_CASE("a defect is one of its template, and of a partial one of all that include it") {
  const TemporaryDirectory directory;
  directory.write("a.subject", "a\n");
  directory.write("a.txt", "{{> foot}}\n");
  directory.write("b.subject", "b\n");
  directory.write("b.txt", "{{/b}}\n");
  directory.write("foot.mustache", "foot\n");
  preview::TemplateCatalogue catalogue(directory.path().string());
  settle(catalogue);
  CHECK(entry_of(catalogue, "a").problem.empty());
  CHECK(entry_of(catalogue, "b").problem.find("b.txt:1: ") != std::string::npos);
  CHECK_FALSE(catalogue.files_of("a").texts.count("b.txt"));
  directory.write("foot.mustache", "\n{{#foot}}\n");
  directory.write("b.txt", "b\n");
  settle(catalogue);
  CHECK(entry_of(catalogue, "a").problem.find("foot.mustache:2: ") != std::string::npos);
  CHECK(entry_of(catalogue, "b").problem.empty());
}

TEST_CASE("example data is that of the locale, or of none") {
  const TemporaryDirectory directory;
  directory.write("receipt.txt", "text\n");
  directory.write("receipt.example.json", "{}");
  directory.write("receipt.de.example.json", R"({"a": 1})");
  const preview::TemplateCatalogue catalogue(directory.path().string());
  CHECK(catalogue.example_of("receipt", "")->file == "receipt.example.json");
  CHECK(catalogue.example_of("receipt", "de-AT")->text == R"({"a": 1})");
  CHECK_FALSE(catalogue.example_of("other", "").has_value());
}

TEST_CASE("a directory that is not there is a problem of each template until it is") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "later";
  preview::TemplateCatalogue catalogue(path.string());
  CHECK_THROWS_AS(catalogue.files_of("activation"), Error);
  std::filesystem::create_directory(path);
  CHECK(catalogue.poll() == preview::PreviewChange::list);
  CHECK(catalogue.files_of("activation").texts.empty());
}

}  // namespace mailroom::test::template_catalogue_test
