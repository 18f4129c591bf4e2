// Versions of the schema are never edited, since databases have them: a change is another version, or a
// function.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

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
      {"1_accounts.down.sql", "dd9ecddfd6e81a378520083ad0fac27b15fefc09074e0bc408a71c0af0025bd5"},
      {"1_accounts.up.sql", "60dce08d6e375fa1477cf53809a9088b84fcd19ed8b78d6eaaf6f1ed3d0f272a"},
      {"2_tokens.down.sql", "a682eaea9c822e6704615862703fb90f9d580e5279a20dedbf3400832954092c"},
      {"2_tokens.up.sql", "af9baf9a2db48a3ff2613b63e2d1c27d8246e6b9a8a0362bfe489de7ff2f9e24"},
      {"3_tokens_by_account.down.sql", "f05a803780bd1afe887f71d05bc0f853cc1bb58f7ec66be84151e980d7345eda"},
      {"3_tokens_by_account.up.sql", "78e2b0cb642709b2dce1a21f200f9eb94da2bf2a1db0735ed596121c89e168d7"},
      {"4_tokens_by_creation.down.sql", "6b7cd6c06113eaae255f233455b2e4ce22e30d181fe84f1076b02c3b2eb7df28"},
      {"4_tokens_by_creation.up.sql", "54ba7e65351eec91f7c3711fcd3d5848e1aa2352888dff525f9764a0aa518ca4"},
      {"5_tokens_by_consumption.down.sql",
       "b192f9230983f7a3d6e3175a87009fb29b2c16846c817576e9330a8fb695dac4"},
      {"5_tokens_by_consumption.up.sql", "6247f3966d53066fa88bcd073bfc6aca2eae6b022648611b7e6386d89e3e0360"},
      {"6_queue_tables.down.sql", "7503bb368e7db60f85ac4276da9659818cb27aa53e90f08063d6dd3712346233"},
      {"6_queue_tables.up.sql", "deaa75e50c9785f96ea0ec7d15fc5b139125a3095013653c56710bfd3f636d45"},
      {"7_delivery_attempts.down.sql", "6c0dcf67691d3bed086d3e517b5e6398d372321f2cf600a94969887e5d4a8dd8"},
      {"7_delivery_attempts.up.sql", "38689767ae38d06d047deaa3d574205917df21b0fab9b135e0cd37e793ad33cc"},
      {"8_batch_keys.down.sql", "4f09eaac097c2a8af4ae0c1492dda91af22d06d91031228e4085d84af4ffff00"},
      {"8_batch_keys.up.sql", "d56bf00ac205203f032ca5552962817ada4ee89d3a1c081943f864f293438f7f"},
      {"9_operation_kinds.down.sql", "8484f571cdeff50f5bb5fbf4b42d10793ea091c939da97f84fe302161476812e"},
      {"9_operation_kinds.up.sql", "6b41a7d15867f674c9350bdb279cd26d73358581ef8979336da8538325581f4a"},
      {"10_actions.down.sql", "c1067f25375cac0bf5dd3df7f97f2ad47ef00fb63aeb75f7a630c0a21b6561ab"},
      {"10_actions.up.sql", "63ab4d48f89ce1ad49e0d01744a3b9cc8fba18c79861dcbf9d0c0a7f661a294c"},
      {"11_messages.down.sql", "ce7762795f16eaa1789c513ee370857919b5059fd8a8b658a3a343b022290547"},
      {"11_messages.up.sql", "01aeb89e1063273c882ed68c1728969e2c7d1de4cede698d910329ec283f6c26"},
      {"12_messages_of_accounts.down.sql",
       "3ef929b4f744e2ffb2063fffd0829e8e76335da5ac5a46be835266eddb908422"},
      {"12_messages_of_accounts.up.sql", "d7443f4184e23e335194e8c8fb46e954d2cd21b1fff0691ab894203700a8b0b0"},
      {"13_tokens_by_message.down.sql", "62602a548d6fb724f2c315cb1747035b027da7603fbba6e0b5c4ed1fc83ff462"},
      {"13_tokens_by_message.up.sql", "009a8fca0c09af5f9da98a1d5f1faefb4c0728f18dedb60bb9a51484172c30c8"},
      {"14_messages_check.down.sql", "6b0538e50b650017cbabdd912f37056b7985f4d1e3fccc1492c059afb15fe30f"},
      {"14_messages_check.up.sql", "7522b07efae6e097e6ef90d1146a3d69064e37b8fc4c3fd801431653dd3a514a"},
      {"15_counted_deliveries.down.sql", "16454f588430bc0b630ba69d0ba9b0f931c86c39c9e4d9a73bb662cfd2732d20"},
      {"15_counted_deliveries.up.sql", "8a5b3e7d1bcdfb5b73e6dd315e947f6a3b61f78cf7d6538dc8cdf79f3e3f06fe"},
      {"16_deliveries_by_address.down.sql",
       "c00bbacb0b0e17ba7f454ab73264c7b8ff8d1024f38416c9cf80f1cba036aba1"},
      {"16_deliveries_by_address.up.sql", "f5e94fa8448bd68c417e1f8858e6c04933ccdaf6aa141551685521d3988b3ba1"},
      {"17_deliveries_check.down.sql", "6e82cbcb53158a9d3b434ad89fc738f56a650f2691381a20336b258b68bac738"},
      {"17_deliveries_check.up.sql", "cff5d9f790aa504c222a7824613bc0eeec54b18262db44409bed4c04c9d15a70"},
      {"18_home.down.sql", "0efe883a38a359270dcb997bf83169275abd2c7ca829afaa2e44de1f5a03a307"},
      {"18_home.up.sql", "9c7ce39747e00ea34899734da3c1dd6478462d4871a0ca785210c8cd28f48577"},
      {"19_adopt_and_forget.down.sql", "5c279685c05358b083ae62864c8fc39dc79e1c4e3d04d6591ca6d119ee959b92"},
      {"19_adopt_and_forget.up.sql", "a5b659745f79c23fc8e41e5ab40e65241cafc31ed8081ad37dc0e23ac9b4d0d8"},
      {"20_outcomes.down.sql", "51d57404f651f48afe2b638e972c4f9663f21360e1bb8d2c31fd90c7682f09c0"},
      {"20_outcomes.up.sql", "9a8ccf8e9832812e4bff4528e829db5ab575a1585001a6b94798b7d457e9ca40"},
      {"21_told_deliveries.down.sql", "b2f1569ef471c7977782577d8f1a50af8a6f00c533f823a33fa97284734acde6"},
      {"21_told_deliveries.up.sql", "d4f3336a0b7f3f4b6fb4f6b2671d39c81c459d8215a98a0ab9172b740e4ade4b"},
      {"22_told_batches.down.sql", "206dfb1db0f8c906b6ae3088345a63325044eeb062b09d2713044159d5f25dc0"},
      {"22_told_batches.up.sql", "1b30a7febe656d9cf822b02626679da56ba52b1c96892e21ab2c6d517ff1a31b"},
      {"23_bounces.down.sql", "c5f28b424202ec65b6c38c6999a9bdefdf5ffc0b1cea86e8b0ec6dbfebb6bdb3"},
      {"23_bounces.up.sql", "80448779e000ced5988492e77a01d4c3be8cee5f4a70a8fdbc971862eb564c6b"},
      {"24_rescheduled_messages.down.sql",
       "363e2f2f615acda5c04dfdc9ae7871ecfd42a0d225920329ccacbe78df76079d"},
      {"24_rescheduled_messages.up.sql", "4c42ea10225d1be76bdc14b321d9aaa0c8b7f7670b2a76e2553b6a3532f43d60"},
      {"25_traceparent.down.sql", "f97a154162f42f29472a1b45f80c10e806aa389379b27d33b80d278cd83440b2"},
      {"25_traceparent.up.sql", "1fc123b4356df7ba8305139ff95c99fa002d7ae2d644ea0e929e999b461afec6"},
      {"26_notify_once.down.sql", "878168a149c99ddda2bbc7845cc3d0a04fc5a88c33eb5d8b0c8f768868c2ef34"},
      {"26_notify_once.up.sql", "1fc01693c5066513c8b9240b0b04e70b6c03e1cce2694546c0ac2294ca060b77"},
  };
  return checksums;
}

}  // namespace

TEST_CASE("the files of every version are those that databases were made with") {
  std::size_t files = 0;
  for (const auto& migration : embedded_migrations()) {
    for (const auto direction : {Direction::up, Direction::down}) {
      const MigrationStep step{&migration, direction};
      INFO(step.file());
      auto text = step.text();
      std::erase(text, '\r');
      REQUIRE(frozen().count(step.file()) == 1);
      CHECK(fmt::format("{:02x}", fmt::join(sha256({text}), "")) == frozen().at(step.file()));
      ++files;
    }
  }
  CHECK(files == frozen().size());
}

TEST_CASE("the build computes the checksum of the functions as their set does") {
  CHECK(function_set_checksum() == embedded_functions().migration.checksum);
}

}  // namespace mailroom::test::frozen_migrations_test
