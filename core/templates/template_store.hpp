// Template sets that profiles share: a thousand tenants with one directory, or with equal ones, have one set.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "templates/template_set.hpp"

namespace mailroom::templates {

/// Loads each directory once, and makes one set of directories whose files are equal. Warnings of such a set
/// name the first of them.
class TemplateStore {
 public:
  /// As load_templates() does.
  std::shared_ptr<const TemplateSet> load(const std::string& directory);

  /// How many sets were made.
  std::size_t sets() const { return by_texts_.size(); }

 private:
  using Texts = std::map<std::string, std::string>;

  std::map<std::string, std::shared_ptr<const TemplateSet>> by_directory_;
  std::map<Texts, std::shared_ptr<const TemplateSet>> by_texts_;
};

}  // namespace mailroom::templates
