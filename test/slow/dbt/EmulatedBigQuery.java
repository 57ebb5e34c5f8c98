import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.zetasql.AnalyzerOptions;
import com.google.zetasql.PreparedQuery;
import com.google.zetasql.SimpleCatalog;
import com.google.zetasql.SimpleTable;
import com.google.zetasql.TableContent;
import com.google.zetasql.TypeFactory;
import com.google.zetasql.Value;
import com.google.zetasql.ZetaSQLBuiltinFunctionOptions;
import com.google.zetasql.ZetaSQLOptions.ProductMode;
import com.google.zetasql.ZetaSQLType.TypeKind;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Runs statements of BigQuery with GoogleSQL: EmulatedBigQuery.java; each line of stdin is the path of a plan, which emulators.ts describes. Answers each with a line of JSON. */
public class EmulatedBigQuery {
  static final Map<String, TypeKind> types =
      Map.of(
          "whole", TypeKind.TYPE_INT64,
          "text", TypeKind.TYPE_STRING,
          "instant", TypeKind.TYPE_TIMESTAMP,
          "naive", TypeKind.TYPE_DATETIME,
          "decimal", TypeKind.TYPE_NUMERIC,
          "json", TypeKind.TYPE_JSON);

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String path = lines.readLine(); path != null; path = lines.readLine())
      System.out.println(answer(JsonParser.parseString(Files.readString(Path.of(path))).getAsJsonObject()));
  }

  static JsonArray answer(JsonObject plan) {
    JsonArray statements = plan.getAsJsonArray("statements");
    JsonArray answers = new JsonArray();
    for (JsonElement each : plan.getAsJsonArray("cases")) {
      JsonArray answer = new JsonArray();
      for (JsonElement place : each.getAsJsonObject().getAsJsonArray("asked"))
        answer.add(run(statements.get(place.getAsInt()).getAsString().strip().replaceAll(";$", ""), each.getAsJsonObject()));
      answers.add(answer);
    }
    return answers;
  }

  static Value toValue(JsonElement text, String kind) {
    if (text.isJsonNull()) return Value.createSimpleNullValue(types.get(kind));
    String value = text.getAsString();
    return switch (kind) {
      case "whole" -> Value.createInt64Value(Long.parseLong(value));
      case "instant" -> Value.createTimestampValueFromUnixMicros(Instant.parse(value).toEpochMilli() * 1000);
      case "naive" -> Value.createDatetimeValue(LocalDateTime.parse(value.replace(' ', 'T')));
      case "decimal" -> Value.createNumericValue(new BigDecimal(value));
      case "json" -> Value.createJsonValue(value);
      default -> Value.createStringValue(value);
    };
  }

  static JsonArray run(String sql, JsonObject given) {
    AnalyzerOptions options = new AnalyzerOptions();
    options.getLanguageOptions().enableMaximumLanguageFeatures();
    options.getLanguageOptions().setProductMode(ProductMode.PRODUCT_EXTERNAL);
    String name = given.get("table").getAsString();
    JsonArray columns = given.getAsJsonArray("columns");
    SimpleTable table = new SimpleTable(name);
    for (JsonElement column : columns)
      table.addSimpleColumn(
          column.getAsJsonArray().get(0).getAsString(),
          TypeFactory.createSimpleType(types.get(column.getAsJsonArray().get(1).getAsString())));
    SimpleCatalog catalog = new SimpleCatalog("warehouse");
    catalog.addZetaSQLFunctionsAndTypes(new ZetaSQLBuiltinFunctionOptions(options.getLanguageOptions()));
    catalog.addSimpleTable(table);
    List<List<Value>> values = new ArrayList<>();
    for (JsonElement row : given.getAsJsonArray("rows")) {
      List<Value> line = new ArrayList<>();
      for (int i = 0; i < columns.size(); i++)
        line.add(toValue(row.getAsJsonArray().get(i), columns.get(i).getAsJsonArray().get(1).getAsString()));
      values.add(line);
    }
    PreparedQuery.Builder builder = PreparedQuery.builder().setSql(sql).setAnalyzerOptions(options).setCatalog(catalog);
    JsonArray answer = new JsonArray();
    try (PreparedQuery query = builder.setTablesContents(Map.of(name, TableContent.create(values))).prepare()) {
      for (List<Value> row : query.execute(Map.of()).getTableData()) {
        JsonArray line = new JsonArray();
        for (Value value : row) line.add(value.isNull() ? null : value.getType().isString() ? value.getStringValue() : String.valueOf(value.getInt64Value()));
        answer.add(line);
      }
    }
    return answer;
  }
}
