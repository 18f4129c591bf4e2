// What the page of mails asks for, as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "preview/preview_source.hpp"

namespace mailroom::preview {

/// The list of the mails of a source.
std::string list_json(PreviewSource& source, std::uint64_t version);

/// The mail that a request names; nullopt if it is not one.
std::optional<PreviewRequest> read_request(std::string_view json);

/// A mail and the id that its parts are asked for by.
struct NumberedMail {
  std::string id;
  std::shared_ptr<const MailView> mail;
};

/// What became of a request, with the mail to be shown, if there is one. `version`: of the mails, before.
std::string result_json(const PreviewRequest& request, const PreviewResult& result,
                        const std::optional<NumberedMail>& shown, std::uint64_t version);

}  // namespace mailroom::preview
