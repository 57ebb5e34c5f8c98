import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
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
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Runs statements of BigQuery with GoogleSQL: EmulatedBigQuery.java TABLES STATEMENT…; all of them on the first table, two on each other
 * one. Prints the answers as JSON.
 */
public class EmulatedBigQuery {
  public static void main(String[] args) throws Exception {
    List<String> statements = new ArrayList<>();
    for (int i = 1; i < args.length; i++) statements.add(Files.readString(Path.of(args[i])).strip().replaceAll(";$", ""));
    JsonArray answers = new JsonArray();
    for (JsonElement rows : JsonParser.parseString(Files.readString(Path.of(args[0]))).getAsJsonArray()) {
      JsonArray answer = new JsonArray();
      for (String sql : answers.isEmpty() ? statements : statements.subList(0, 2)) answer.add(run(sql, rows.getAsJsonArray()));
      answers.add(answer);
    }
    System.out.println(answers);
  }

  static SimpleTable reviews() {
    SimpleTable table = new SimpleTable("reviews");
    table.addSimpleColumn("id", TypeFactory.createSimpleType(TypeKind.TYPE_INT64));
    table.addSimpleColumn("digits", TypeFactory.createSimpleType(TypeKind.TYPE_STRING));
    table.addSimpleColumn("modifiedTime", TypeFactory.createSimpleType(TypeKind.TYPE_TIMESTAMP));
    table.addSimpleColumn("naive", TypeFactory.createSimpleType(TypeKind.TYPE_DATETIME));
    table.addSimpleColumn("kolkata", TypeFactory.createSimpleType(TypeKind.TYPE_DATETIME));
    table.addSimpleColumn("told", TypeFactory.createSimpleType(TypeKind.TYPE_STRING));
    table.addSimpleColumn("millis", TypeFactory.createSimpleType(TypeKind.TYPE_INT64));
    return table;
  }

  static List<Value> toValues(JsonArray row) {
    String id = row.get(0).getAsString();
    long millis = row.get(4).getAsLong();
    return List.of(
        Value.createInt64Value(Long.parseLong(id)),
        Value.createStringValue(id),
        Value.createTimestampValueFromUnixMicros(millis * 1000),
        Value.createDatetimeValue(LocalDateTime.parse(row.get(2).getAsString().replace(' ', 'T'))),
        Value.createDatetimeValue(LocalDateTime.parse(row.get(3).getAsString().replace(' ', 'T'))),
        Value.createStringValue(row.get(1).getAsString()),
        Value.createInt64Value(millis));
  }

  static JsonArray run(String sql, JsonArray rows) {
    AnalyzerOptions options = new AnalyzerOptions();
    options.getLanguageOptions().enableMaximumLanguageFeatures();
    options.getLanguageOptions().setProductMode(ProductMode.PRODUCT_EXTERNAL);
    SimpleCatalog catalog = new SimpleCatalog("warehouse");
    catalog.addZetaSQLFunctionsAndTypes(new ZetaSQLBuiltinFunctionOptions(options.getLanguageOptions()));
    catalog.addSimpleTable(reviews());
    List<List<Value>> values = new ArrayList<>();
    for (JsonElement row : rows) values.add(toValues(row.getAsJsonArray()));
    PreparedQuery.Builder builder = PreparedQuery.builder().setSql(sql).setAnalyzerOptions(options).setCatalog(catalog);
    JsonArray answer = new JsonArray();
    try (PreparedQuery query = builder.setTablesContents(Map.of("reviews", TableContent.create(values))).prepare()) {
      for (List<Value> row : query.execute(Map.of()).getTableData()) {
        JsonArray line = new JsonArray();
        for (Value value : row) line.add(value.isNull() ? null : value.getType().isString() ? value.getStringValue() : String.valueOf(value.getInt64Value()));
        answer.add(line);
      }
    }
    return answer;
  }
}
