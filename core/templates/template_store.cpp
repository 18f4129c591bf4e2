// Compares the files by their texts, once a directory: the paths in a set are for messages only.

#include "templates/template_store.hpp"

#include <utility>

namespace mailroom::templates {

std::shared_ptr<const TemplateSet> TemplateStore::load(const std::string& directory) {
  if (const auto known = by_directory_.find(directory); known != by_directory_.end()) return known->second;
  const auto files = directory.empty() ? TemplateFiles{} : read_template_files(directory);
  auto& set = by_texts_[files.texts];
  if (!set) set = std::make_shared<const TemplateSet>(files);
  by_directory_[directory] = set;
  return set;
}

}  // namespace mailroom::templates
