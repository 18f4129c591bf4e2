// The template files of a directory as they are now, and which templates cannot be loaded.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "preview/directory_watch.hpp"
#include "preview/preview_source.hpp"
#include "templates/template_files.hpp"

namespace mailroom::preview {

/// Reads a file again when it has changed, and checks a template again when one of its files or a partial
/// has, so that a change among thousands of files takes as long as one among few. poll() is for one thread,
/// the other functions for any.
class TemplateCatalogue {
 public:
  /// The built-in templates alone without a directory.
  explicit TemplateCatalogue(const std::string& directory);

  int fd() const { return watch_ ? watch_->fd() : -1; }
  /// Reads what has changed, or checks some templates that have not been checked since.
  PreviewChange poll();
  /// True if templates are still to be checked.
  bool has_work() const { return !unchecked_.empty(); }

  struct Entry {
    std::string name;
    std::vector<std::string> locales;  ///< of its files; an empty one is that of no locale
    std::string problem;               ///< why it cannot be loaded, once it has been checked
  };
  std::vector<Entry> entries() const;

  /// The files of one template and all partials. Throws Error(configuration) for one that cannot be read.
  templates::TemplateFiles files_of(std::string_view name) const;

  /// Example data: the text of the file that suits the locale, and its name.
  struct Example {
    std::string file;
    std::string text;
  };
  /// Throws Error(configuration) if it cannot be read; nullopt without one.
  std::optional<Example> example_of(std::string_view name, std::string_view locale) const;

 private:
  /// What a file has, or why it cannot be read.
  struct Content {
    std::string text;
    std::string error;
    std::string hint;
  };
  struct Template {
    std::map<std::string, std::string> files;  ///< the locale of each, by name
    std::string problem;
  };

  Content read(const std::string& file, bool is_example) const;
  /// True if the list of templates is other than before.
  bool take(const std::string& file);
  bool put(const templates::TemplateFileName& name, const std::string& file, bool is_there);
  void mark_all_unchecked();
  bool check_some();
  std::string problem_of(const std::string& name) const;
  static void add(templates::TemplateFiles& files, const std::string& file, const Content& content);

  std::string directory_;
  std::optional<DirectoryWatch> watch_;
  std::set<std::string> unchecked_;  ///< of the thread of poll()
  mutable std::mutex mutex_;         ///< of what follows
  std::string error_;                ///< why the directory cannot be read
  std::map<std::string, Content> contents_;
  std::map<std::string, std::map<std::string, std::string>, std::less<>>
      examples_;  ///< files by name and locale
  std::map<std::string, Template, std::less<>> templates_;
  std::set<std::string> partials_;
};

}  // namespace mailroom::preview
