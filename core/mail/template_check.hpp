// Finds what is wrong in a template at load, with file and line, before any mail is rendered.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mail/builtin_templates.hpp"
#include "mail/template_files.hpp"

namespace mailroom {

/// A template that can be rendered: its text, and that of each partial it reaches.
struct CheckedTemplate {
  std::string text;
  std::map<std::string, std::string> partials;
};

/// Checks templates before the library parses them. `place` is the file as messages name it.
class TemplateChecker {
 public:
  explicit TemplateChecker(const TemplateFiles& files) : files_(files) {}

  /// Throws Error(configuration) with file, line and reason for the defects that docs/mail.md lists.
  CheckedTemplate check(const std::string& place, std::string_view text, MailPart part);

  /// What was not refused but is probably wrong, in the order it was found, each once.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Source {
    std::string place;
    std::string text;
  };

  /// What a template becomes with its partials in place.
  struct Extent {
    std::size_t size = 0;   ///< bytes
    std::size_t depth = 0;  ///< of partials within partials
  };

  Extent visit(const Source& source);
  Extent visit_partial(const Source& including, const std::string& name, std::size_t position);
  void check_text(const Source& source) const;
  void check_name(const Source& source, const std::string& name, std::size_t position) const;
  void warn_of_unescaped(const Source& source, const std::string& name, std::size_t position);
  Source partial_source(const Source& including, const std::string& name, std::size_t position) const;
  std::string path_of(const std::string& file) const;

  const TemplateFiles& files_;
  std::vector<std::string> warnings_;
  MailPart part_ = MailPart::text;               ///< of the template being checked
  std::vector<std::string> chain_;               ///< the partials being visited, outermost first
  std::map<std::string, Extent> extents_;        ///< of the partials visited
  std::map<std::string, std::string> partials_;  ///< the texts of the same
};

}  // namespace mailroom
