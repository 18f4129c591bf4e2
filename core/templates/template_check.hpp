// Finds what is wrong in a template at load, with file and line, from its tags with their positions.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/template_files.hpp"

namespace mailroom::templates {

/// One tag of a Mustache template.
struct TemplateTag {
  enum class Kind { variable, unescaped, section, inverted, end, partial, comment };
  Kind kind = Kind::variable;
  std::string name;          ///< without blanks around it
  std::size_t position = 0;  ///< of its first brace, in bytes
  std::size_t size = 0;      ///< with its braces

  bool operator==(const TemplateTag&) const = default;
};

/// Why a template does not parse.
struct TemplateDefect {
  std::size_t position = 0;
  std::string reason;

  bool operator==(const TemplateDefect&) const = default;
};

/// The tags of a template in order, up to the first defect.
struct TemplateTags {
  std::vector<TemplateTag> tags;
  std::optional<TemplateDefect> defect;
};

/// Finds the tags. One that changes the delimiters is a defect, and so are sections nested more than 32 deep:
/// rendering is recursive.
TemplateTags find_tags(std::string_view text);

/// A template or partial that can be rendered.
struct CheckedTemplate {
  std::string text;
  std::vector<TemplateTag> tags;
  std::size_t size = 0;  ///< with its partials in place
};

/// Checks templates before they are rendered. `place` is the file as messages name it.
class TemplateChecker {
 public:
  /// Throws Error(configuration) as TemplateFiles::names().
  explicit TemplateChecker(const TemplateFiles& files) : files_(files), names_(files.names()) {}

  /// Throws Error(configuration) with file, line and reason for the defects that docs/mail.md lists. Only
  /// mailroom's own variables may be named if `knows_all`.
  CheckedTemplate check(const std::string& place, std::string_view text, const TemplateFileName& name,
                        bool knows_all);

  /// The partials that the templates reach, by the names of their files.
  const std::map<std::string, CheckedTemplate>& partials() const { return partials_; }

  const TemplateNames& names() const { return names_; }

  /// What was not refused but is probably wrong, in the order it was found, each once.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Source {
    std::string place;
    std::string text;
    std::string locale;
  };

  /// What a template becomes with its partials in place.
  struct Extent {
    std::size_t size = 0;   ///< bytes
    std::size_t depth = 0;  ///< of partials within partials
  };

  Extent visit(const Source& source, std::vector<TemplateTag>& tags);
  Extent visit_partial(const Source& including, const std::string& name, std::size_t position);
  void check_text(const Source& source) const;
  void check_name(const Source& source, const std::string& name, std::size_t position) const;
  void warn_of(const Source& source, const TemplateTag& tag);
  /// The files of a partial, one of which suits wherever `including` does.
  const FilesByLocale& partial_files(const Source& including, const std::string& name, std::size_t position);

  const TemplateFiles& files_;
  TemplateNames names_;
  std::vector<std::string> warnings_;
  MailPart part_ = MailPart::text;         ///< of the template being checked
  bool knows_all_ = false;                 ///< of the same
  std::vector<std::string> chain_;         ///< the partials being visited, outermost first
  std::map<std::string, Extent> extents_;  ///< of the partials visited
  std::map<std::string, CheckedTemplate> partials_;
};

}  // namespace mailroom::templates
