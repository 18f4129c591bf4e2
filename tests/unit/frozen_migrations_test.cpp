// Versions of the schema are never edited, since databases have them: a change is another version, or a
// function.

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/encoded_text.hpp"
#include "crypto/digest.hpp"
#include "schema/function_set.hpp"
#include "schema/migration_plan.hpp"
#include "support/catch.hpp"

namespace mailroom::test::frozen_migrations_test {
namespace {

/// The SHA-256 of each file. A new version adds its two lines; no line ever changes.
const std::map<std::string, std::string>& frozen() {
  static const std::map<std::string, std::string> checksums{
      {"0_init.down.sql", "0f8246429ff13e025d6eb691444ec5093c60d05a4e7b1912a6194870154bd88e"},
      {"0_init.up.sql", "c798fd12020b432422ac9277780a7c7f71d3783564299e77b1ca3e908640d342"},
      {"1_tokens.down.sql", "78a9366235f1317ea6f326e103010764deff52268345cd1f930fe3eac1156bd5"},
      {"1_tokens.up.sql", "27872e0af0d7660a11eea1f6540e672d44f9063517d154b2fa3ddf7fa6d4e6ab"},
      {"2_accounts.down.sql", "b78cb9d30a20861ba78dca1daab23e98e80339e4cfe68c19a7153ce0453e473f"},
      {"2_accounts.up.sql", "bff3a9ab7df996b04134ea76d5cef4e583bba6d496362f03fd7dd9907b5c944a"},
      {"3_tokens_by_account.down.sql", "f05a803780bd1afe887f71d05bc0f853cc1bb58f7ec66be84151e980d7345eda"},
      {"3_tokens_by_account.up.sql", "78e2b0cb642709b2dce1a21f200f9eb94da2bf2a1db0735ed596121c89e168d7"},
      {"4_tokens_by_creation.down.sql", "6b7cd6c06113eaae255f233455b2e4ce22e30d181fe84f1076b02c3b2eb7df28"},
      {"4_tokens_by_creation.up.sql", "54ba7e65351eec91f7c3711fcd3d5848e1aa2352888dff525f9764a0aa518ca4"},
      {"5_tokens_by_consumption.down.sql",
       "b192f9230983f7a3d6e3175a87009fb29b2c16846c817576e9330a8fb695dac4"},
      {"5_tokens_by_consumption.up.sql", "6247f3966d53066fa88bcd073bfc6aca2eae6b022648611b7e6386d89e3e0360"},
      {"6_tokens_by_message.down.sql", "62602a548d6fb724f2c315cb1747035b027da7603fbba6e0b5c4ed1fc83ff462"},
      {"6_tokens_by_message.up.sql", "009a8fca0c09af5f9da98a1d5f1faefb4c0728f18dedb60bb9a51484172c30c8"},
      {"7_queue.down.sql", "4252c3f412370b3c2ec428f1cb381209ca75b99a6882895cbd39f6949a12ccea"},
      {"7_queue.up.sql", "af98052236b99a96f62e28282a59021f64bd2b00882bc405df76b1c0ca197b9c"},
      {"8_messages.down.sql", "54d93fe0cbf238b01447bd9c14e6e2a597b86591f225c65d3b30fc11a19fb6c7"},
      {"8_messages.up.sql", "d7da8777f45bd74cb54198b7f84cff3fd929364fd1e3881af332aeec3a68b2f2"},
  };
  return checksums;
}

/// A line of frozen(), so that a failure shows the one to write.
std::string line_of(const std::string& file, const std::string& checksum) {
  return fmt::format("{{\"{}\", \"{}\"}},", file, checksum);
}

}  // namespace

TEST_CASE("the files of every version are those that databases were made with") {
  std::size_t files = 0;
  for (const auto& migration : schema::embedded_migrations()) {
    for (const auto direction : {schema::Direction::up, schema::Direction::down}) {
      const schema::MigrationStep step{&migration, direction};
      INFO(step.file());
      auto text = step.text();
      std::erase(text, '\r');
      REQUIRE(frozen().count(step.file()) == 1);
      CHECK(line_of(step.file(), hex_text(crypto::sha256({text}))) ==
            line_of(step.file(), frozen().at(step.file())));
      ++files;
    }
  }
  CHECK(files == frozen().size());
}

TEST_CASE("the build computes the checksum of the functions as their set does") {
  CHECK(schema::function_set_checksum() == schema::embedded_functions().migration.checksum);
}

}  // namespace mailroom::test::frozen_migrations_test
